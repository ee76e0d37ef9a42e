// Answers are named in their list, and put side by side two to six at a time: the button says how many
// are ticked.
"use strict";

Sluice.onPart("form.picking", (form) => {
  const maxPicked = Number(form.dataset.max);
  const button = form.querySelector("[data-compare]");
  const note = form.querySelector("[data-picked]");

  function count() {
    const elsewhere = form.querySelectorAll("input[type=hidden][name=id]").length;
    const picked = form.querySelectorAll("input[name=id]:checked").length + elsewhere;
    button.disabled = picked < 2 || picked > maxPicked;
    note.textContent = picked === 0 ? `Tick two to ${maxPicked}.`
      : picked === 1 ? "One is ticked: tick another." : picked > maxPicked ? `${picked} are ticked: at most ${maxPicked}.`
        : `${picked} are ticked.`;
    if (elsewhere) {
      note.textContent += ` On other pages: ${elsewhere}.`;
    }
  }

  // A name is saved when it is left; Enter leaves it.
  form.addEventListener("change", ({target}) => target.form === form ? count() : target.form.requestSubmit());
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.form !== form && event.target.form) {
      event.preventDefault();
      event.target.blur();
    }
  });
  count();
});
