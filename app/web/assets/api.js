// Starts Swagger UI. A file of its own, because the page's policy admits no inline scripts.
"use strict";

// Swagger UI puts a link into the button that opens an operation, where neither keys nor screen
// readers reach it as such. The button alone opens it, and writes its address all the same.
const withoutNestedLinks = ({React}) => ({
  components: {DeepLink: ({text}) => React.createElement("span", null, text)},
});

Sluice.onPart("#swagger-ui", (place) => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
  dark.addEventListener("change", follow);
  follow();
  SwaggerUIBundle({
    url: "/openapi.json",
    domNode: place,
    deepLinking: true,
    plugins: [withoutNestedLinks],
    // The default asks a service on the internet whether the document is valid.
    validatorUrl: null,
  });
});
