// Starts Swagger UI. A file of its own, because the page's policy admits no inline scripts.
"use strict";

// Swagger UI puts a link into the button that opens an operation, where neither keys nor screen
// readers reach it as such. The button alone opens it, and writes its address all the same.
const withoutNestedLinks = ({React}) => ({
  components: {DeepLink: ({text}) => React.createElement("span", null, text)},
});

// Its own layout has a title and a main part, of which a page has one each: the frame's.
const withinAPage = ({React}) => ({
  components: {
    WithinAPage: ({getComponent, specSelectors}) => {
      const show = (name) => React.createElement(getComponent(name, true));
      const isThere = specSelectors.loadingStatus() === "success" && specSelectors.specStr();
      return React.createElement(
        "div", {className: "swagger-ui"}, show("SvgAssets"), show("errors"),
        isThere ? show("operations") : null, isThere ? show("Models") : null,
      );
    },
  },
});

Sluice.onPart("#swagger-ui", (place) => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
  dark.addEventListener("change", follow);
  follow();
  SwaggerUIBundle({
    url: `${Sluice.root}/openapi.json`,
    domNode: place,
    deepLinking: true,
    layout: "WithinAPage",
    plugins: [withoutNestedLinks, withinAPage],
    // The default asks a service on the internet whether the document is valid.
    validatorUrl: null,
  });
});
