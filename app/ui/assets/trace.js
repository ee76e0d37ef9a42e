// A file of measurements, dropped or chosen: sent as it is, while it is read, and fitted.
"use strict";

(() => {
  const MIB = 2 ** 20;
  const MAX_NAMED = 4;
  const MAX_LETTERS = 120;

  class TracePane {
    constructor(form) {
      this.form = form;
      this.place = form.querySelector("#drop");
      this.progress = form.querySelector("#sending");
      this.stop = form.querySelector("#stop-sending");
      this.sending = null;
      this.begins = [];
      const chooser = form.querySelector("#file");
      form.classList.add("with-script");
      chooser.addEventListener("change", () => this.take([...chooser.files]));
      this.stop.addEventListener("click", () => this.sending?.abort());
      const panel = form.closest(".panel") || form;
      panel.addEventListener("dragover", (event) => this.onOver(event));
      panel.addEventListener("dragleave", () => this.place.classList.remove("over"));
      panel.addEventListener("drop", (event) => this.onDrop(event));
    }

    onOver(event) {
      if (![...event.dataTransfer.types].includes("Files")) return;
      event.preventDefault();
      this.show();
      this.place.classList.add("over");
    }

    onDrop(event) {
      if (event.dataTransfer.files.length === 0) return;
      event.preventDefault();
      this.show();
      this.place.classList.remove("over");
      this.take([...event.dataTransfer.files]);
    }

    show() {
      const source = this.form.querySelector("[name=source][value=trace]");
      if (source) source.checked = true;
    }

    /** Refuse what is too long before it is sent, else send it. */
    async take(files) {
      if (files.length === 0 || this.sending) return;
      const length = files.reduce((sum, file) => sum + file.size, 0);
      const limits = this.form.dataset;
      this.begins = await Promise.all(files.filter((file) => file.size > 0).slice(0, MAX_NAMED).map(beginning));
      const maxBytes = Number(files.length > 1 ? limits.maxBodyBytes : limits.maxTraceBytes);
      if (length > maxBytes) {
        this.refuse(`expected ${files.length > 1 ? "files" : "a file"} of at most ${maxBytes / MIB} MiB`);
      } else if (length === 0) this.refuse("the file is empty");
      else if (length <= Number(limits.maxBodyBytes) && !limits.sendTo && await areTransfers(files)) {
        this.form.elements.trace.value = await files[0].text();
        this.form.requestSubmit();
      } else this.send(await body(files));
    }

    send(sent) {
      const {content, type} = sent;
      const request = new XMLHttpRequest();
      this.sending = request;
      this.clear();
      request.open("POST", this.address());
      request.setRequestHeader("Content-Type", type);
      request.setRequestHeader("Accept", "application/problem+json");
      request.setRequestHeader("HX-Request", "true");
      request.upload.addEventListener("progress", (event) => {
        this.progress.value = event.total ? event.loaded / event.total : 0;
      });
      request.addEventListener("load", () => this.onAnswer(request));
      request.addEventListener("error", () => this.offer(sent));
      request.addEventListener("loadend", () => this.end());
      this.progress.hidden = this.stop.hidden = false;
      window.Sluice.say("Sending the file");
      request.send(content);
    }

    address() {
      const given = new URLSearchParams({message: this.form.elements.message.value});
      const names = ["current", "kind", "method", "shape", "columns", "test", "run", "where",
        "stages_overlap", "several_at_once"];
      for (const name of names) {
        const value = this.form.elements[name]?.value;
        if (value) given.set(name, value);
      }
      return `${this.form.dataset.sendTo ?? `${Sluice.root}/ui/fits`}?${given}`;
    }

    onAnswer(request) {
      const place = request.getResponseHeader("HX-Location");
      if (place) window.location.assign(JSON.parse(place).path);
      else if (refusalOf(request)) this.explain(refusalOf(request));
      else this.refuse(detail(request));
    }

    end() {
      this.sending = null;
      this.progress.hidden = this.stop.hidden = true;
      this.progress.value = 0;
      this.form.querySelector("#file").value = "";
    }

    refuse(text) {
      const note = document.createElement("div");
      note.className = "mistake";
      note.id = "mistake-trace";
      note.append(paragraph(text));
      this.explain(note);
      return note;
    }

    /** The same once more, where nobody answered. */
    offer(sent) {
      const note = this.refuse("The service does not answer. Is it running?");
      const again = document.createElement("button");
      again.type = "button";
      again.textContent = "Send again";
      again.addEventListener("click", () => this.sending || this.send(sent));
      note.append(again);
    }

    /** Below the field: what is wrong, in a sentence or with the nearest formats, and of which file. */
    explain(note) {
      this.clear();
      note.append(...this.begins.map(({name, line}) => {
        const first = paragraph(line ? `${name} begins: ` : `${name} is no plain text.`);
        first.className = "quiet";
        if (line) first.append(Object.assign(document.createElement("code"), {textContent: line}));
        return first;
      }));
      const area = this.form.querySelector("#trace");
      area.after(note);
      area.setAttribute("aria-invalid", "true");
      area.setAttribute("aria-describedby", note.id);
      area.focus();
      window.Sluice.say(note.querySelector("p")?.textContent ?? note.textContent);
    }

    clear() {
      document.getElementById("mistake-trace")?.remove();
      const area = this.form.querySelector("#trace");
      area.removeAttribute("aria-invalid");
      area.removeAttribute("aria-describedby");
    }
  }

  function paragraph(text) {
    return Object.assign(document.createElement("p"), {textContent: text});
  }

  /** A file's name and its first line, so that what is said of a line can be seen beside it. */
  async function beginning(file) {
    const text = await file.slice(0, 4 * MAX_LETTERS).text().catch(() => "");
    const line = text.split(/[\r\n]+/).find((one) => one.trim()) ?? "";
    const isPlain = !/[\u0000-\u0008\u000e-\u001f\ufffd]/.test(line.slice(0, MAX_LETTERS));
    return {name: file.name, line: isPlain ? line.slice(0, MAX_LETTERS) : ""};
  }

  /** Whether this is one file of whole transfers by fragment size, which no fit takes. */
  async function areTransfers(files) {
    if (files.length !== 1) return false;
    const text = await files[0].slice(0, 2 ** 16).text().catch(() => "");
    const header = text.split(/[\r\n]+/).find((line) => line.trim() && !line.trim().startsWith("#")) ?? "";
    return header.includes("message_bytes") && header.includes("fragment_bytes");
  }

  /** One file as it is; several in one document, as the service reads them together. */
  async function body(files) {
    if (files.length === 1) return {content: files[0], type: "application/octet-stream"};
    const texts = await Promise.all(files.map((file) => file.text()));
    const measurements = texts.map((content) => ({content}));
    return {content: JSON.stringify({measurements}), type: "application/json"};
  }

  /** What the server wrote of a file that is in no format; null where it said something else. */
  function refusalOf(request) {
    if (!request.getResponseHeader("Content-Type")?.startsWith("text/html")) return null;
    return new DOMParser().parseFromString(request.responseText, "text/html").getElementById("mistake-trace");
  }

  function detail(request) {
    try {
      return JSON.parse(request.responseText).detail;
    } catch {
      return `the service refused the file (${request.status})`;
    }
  }

  window.Sluice.onPart("#drop", (place) => new TracePane(place.closest("form")));
})();
