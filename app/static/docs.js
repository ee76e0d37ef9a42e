// Starts Swagger UI. A file of its own, because the page's policy admits no inline scripts.
window.addEventListener("load", () => {
  window.ui = SwaggerUIBundle({
    url: "/openapi.json",
    dom_id: "#swagger-ui",
    deepLinking: true,
    // The default asks a service on the internet whether the document is valid.
    validatorUrl: null,
  });
});
