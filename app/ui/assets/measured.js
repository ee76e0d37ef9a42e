// A file that is dropped or chosen becomes the text of its field; those that are dropped beside the fields, of empty ones.
"use strict";

(() => {
  const MIB = 2 ** 20;
  const FIRST_LINES = 4096;

  /** The bytes that fields are sent in: a line ends in CR LF there, of which each has three. */
  function sentBytes(fields) {
    const text = new URLSearchParams(fields).toString();
    return text.length + 3 * (text.split("%0A").length - text.split("%0D%0A").length);
  }

  const hasFiles = (event) => [...event.dataTransfer.types].includes("Files");

  class FileField {
    constructor(part) {
      this.part = part;
      this.form = part.closest("form");
      this.place = part.querySelector(".drop");
      this.area = part.querySelector("textarea");
      this.note = document.createElement("p");
      this.note.className = "mistake";
      this.note.setAttribute("role", "alert");
      this.chooser = part.querySelector("input[type=file]");
      part.querySelector("[data-choose]").hidden = false;
      this.chooser.addEventListener("change", () => this.take([...this.chooser.files]));
      part.addEventListener("dragover", (event) => hasFiles(event) && this.place.classList.add("over"));
      part.addEventListener("dragleave", () => this.place.classList.remove("over"));
      part.addEventListener("drop", (event) => this.onDrop(event));
      part.fileField = this;
    }

    onDrop(event) {
      this.place.classList.remove("over");
      if (event.dataTransfer.files.length === 0) return;
      event.preventDefault();
      event.stopPropagation();
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
      // Before it is in the field: to lay out a text that is too long takes seconds.
      const more = sentBytes({text}) - sentBytes({text: this.area.value});
      if (sentBytes(new FormData(this.form)) + more > maxBytes) {
        return this.refuse(`With it the form would have more than ${maxBytes / MIB} MiB.`);
      }
      this.area.value = text;
      this.refuse("");
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

    isEmpty() {
      const stored = this.part.querySelector("[name=stored]");
      return !this.area.value.trim() && !stored?.value;
    }

    refuse(text) {
      this.note.remove();
      if (!text) return;
      this.note.textContent = text;
      this.area.after(this.note);
    }
  }

  window.Sluice.onPart("[data-measured]", (part) => new FileField(part));

  // A file that missed its field would take the page's place, with all that was filled in.
  window.Sluice.onPart(".measured", (panel) => {
    panel.addEventListener("dragover", (event) => hasFiles(event) && event.preventDefault());
    panel.addEventListener("drop", (event) => {
      const files = [...event.dataTransfer.files];
      if (files.length === 0) return;
      event.preventDefault();
      const fields = [...panel.querySelectorAll("[data-measured]")].map((part) => part.fileField);
      const empty = fields.filter((field) => field.isEmpty());
      if (files.length > empty.length) {
        const words = files.length === 1 ? "1 file finds" : `${files.length} files find`;
        return fields.at(-1).refuse(`${words} no empty field.`);
      }
      files.forEach((file, place) => empty[place].take([file]));
    });
  });
})();
