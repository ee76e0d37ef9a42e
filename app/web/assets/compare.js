// Answers are put side by side two to six at a time: the button says how many are ticked.
"use strict";

Sluice.onPart("form.picking", (form) => {
  const most = Number(form.dataset.most);
  const button = form.querySelector("[data-compare]");
  const said = form.querySelector("[data-picked]");

  function count() {
    const elsewhere = form.querySelectorAll("input[type=hidden][name=id]").length;
    const picked = form.querySelectorAll("input[name=id]:checked").length + elsewhere;
    button.disabled = picked < 2 || picked > most;
    said.textContent = picked === 0 ? `Tick two to ${most}.`
      : picked === 1 ? "One is ticked: tick another." : picked > most ? `${picked} are ticked: at most ${most}.`
        : `${picked} are ticked.`;
    if (elsewhere) {
      said.textContent += ` On other pages: ${elsewhere}.`;
    }
  }

  form.addEventListener("change", count);
  count();
});
