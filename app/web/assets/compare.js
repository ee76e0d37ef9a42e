// Answers are put side by side two to six at a time: the button says how many are ticked.
"use strict";

Sluice.onPart("form.picking", (form) => {
  const max_fragments = Number(form.dataset.max_fragments);
  const button = form.querySelector("[data-compare]");
  const stated = form.querySelector("[data-picked]");

  function count() {
    const elsewhere = form.querySelectorAll("input[type=hidden][name=id]").length;
    const picked = form.querySelectorAll("input[name=id]:checked").length + elsewhere;
    button.disabled = picked < 2 || picked > max_fragments;
    stated.textContent = picked === 0 ? `Tick two to ${max_fragments}.`
      : picked === 1 ? "One is ticked: tick another." : picked > max_fragments ? `${picked} are ticked: at most ${max_fragments}.`
        : `${picked} are ticked.`;
    if (elsewhere) {
      stated.textContent += ` On other pages: ${elsewhere}.`;
    }
  }

  form.addEventListener("change", count);
  count();
});
