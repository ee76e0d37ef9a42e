// A file of items, chosen or dropped: it becomes the text of the field, to be seen and changed.
"use strict";

Sluice.onPart("#items-part", (part) => {
  const form = part.closest("form");
  const area = part.querySelector("textarea");
  const chooser = part.querySelector("[type=file]");

  function clear() {
    document.getElementById("mistake-items")?.remove();
    area.removeAttribute("aria-invalid");
    area.setAttribute("aria-describedby", "items-hint");
  }

  function refuse(text) {
    clear();
    area.after(Object.assign(document.createElement("p"), {className: "mistake", id: "mistake-items", textContent: text}));
    area.setAttribute("aria-invalid", "true");
    area.setAttribute("aria-describedby", "items-hint mistake-items");
    Sluice.say(text);
  }

  async function take(file) {
    if (!file) return;
    const text = await file.text();
    const room = Number(form.dataset.maxBodyBytes);
    if (new URLSearchParams({items: text}).toString().length > room) {
      refuse(`expected a table that the form can send, of less than ${room / 2 ** 20} MiB: the command line takes longer ones`);
    } else {
      clear();
      area.value = text;
      Sluice.say(`Read ${file.name}`);
    }
    chooser.value = "";
  }

  area.addEventListener("input", clear);
  chooser.addEventListener("change", () => take(chooser.files[0]));
  part.addEventListener("dragover", (event) => {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    event.stopPropagation();
    area.parentElement.classList.add("over");
  });
  part.addEventListener("dragleave", () => area.parentElement.classList.remove("over"));
  part.addEventListener("drop", (event) => {
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    event.stopPropagation();
    area.parentElement.classList.remove("over");
    take(event.dataTransfer.files[0]);
  });
});
