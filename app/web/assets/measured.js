// A file that is dropped or chosen becomes the text of its field.
"use strict";

(() => {
  const MIB = 2 ** 20;
  const FIRST_LINES = 4096;

  class FileField {
    constructor(part) {
      this.part = part;
      this.form = part.closest("form");
      this.place = part.querySelector(".drop");
      this.area = part.querySelector("textarea");
      this.note = part.querySelector("[data-refused]");
      this.chooser = part.querySelector("input[type=file]");
      part.querySelector("[data-choose]").hidden = false;
      this.chooser.addEventListener("change", () => this.take([...this.chooser.files]));
      part.addEventListener("dragover", (event) => this.onOver(event));
      part.addEventListener("dragleave", () => this.place.classList.remove("over"));
      part.addEventListener("drop", (event) => this.onDrop(event));
    }

    onOver(event) {
      if (![...event.dataTransfer.types].includes("Files")) return;
      event.preventDefault();
      this.place.classList.add("over");
    }

    onDrop(event) {
      if (event.dataTransfer.files.length === 0) return;
      event.preventDefault();
      this.place.classList.remove("over");
      this.take([...event.dataTransfer.files]);
    }

    async take(files) {
      const maxBytes = Number(this.form.dataset.maxBodyBytes);
      this.chooser.value = "";
      if (files.length === 0) return;
      if (files.length > 1) return this.refuse("One file a field: drop one.");
      if (files[0].size === 0) return this.refuse("The file is empty.");
      if (files[0].size > maxBytes) return this.refuse(`The file has more than ${maxBytes / MIB} MiB.`);
      const text = await files[0].text().catch(() => "");
      if (!text || text.includes("\u0000")) return this.refuse("The file is no plain text.");
      this.refuse("");
      this.area.value = text;
      this.area.removeAttribute("aria-invalid");
      this.area.dispatchEvent(new Event("input", {bubbles: true}));
      this.suggestName(text, files[0].name);
      this.area.focus();
      window.Sluice.say(`${files[0].name} is in the field`);
    }

    /** The stage's name, where none was typed: what the file says that it times, else its own name. */
    suggestName(text, file) {
      const name = this.part.querySelector("[name=name]");
      if (!name || name.value) return;
      const stated = text.slice(0, FIRST_LINES).match(/^# stage: (.+)$/m)?.[1];
      name.value = (stated ?? file.replace(/\.[^.]*$/, "")).trim();
    }

    refuse(text) {
      this.note.textContent = text;
      this.note.hidden = !text;
    }
  }

  window.Sluice.onPart("[data-measured]", (part) => new FileField(part));
})();
