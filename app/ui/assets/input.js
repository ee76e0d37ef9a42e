// The stage table: rows, units, keys, paste. The server knows how to do all of it but paste and units
// too; here it happens at once.
"use strict";

(() => {
  const Units = window.SluiceUnits;
  const COLUMNS = ["name", "overhead", "cost", "up_to"];
  const WORDS = {
    name: "name of the stage",
    overhead: "overhead",
    cost: "cost a byte",
    up_to: "greatest fragment size",
  };

  class StageTable {
    constructor(form) {
      this.form = form;
      this.table = form.querySelector("#stages");
      this.maxStages = Number(form.dataset.maxStages);
      this.units = {};
      for (const chooser of this.table.querySelectorAll("[data-unit]")) {
        this.units[chooser.dataset.unit] = chooser.value;
        chooser.addEventListener("change", () => this.changeUnit(chooser));
      }
      this.table.addEventListener("keydown", (event) => this.onKey(event));
      this.pasting = new window.SluicePaste(this);
      this.table.addEventListener("input", (event) => this.onInput(event));
      this.table.addEventListener("change", () => this.renumber());
      form.addEventListener("click", (event) => this.onClick(event));
      this.renumber();
    }

    get rows() {
      return [...this.table.tBodies];
    }

    cell(row, column) {
      return row.querySelector(`[data-column=${column}]`);
    }

    isBlank(row) {
      return COLUMNS.every((column) => this.cell(row, column).value.trim() === "");
    }

    isEmpty() {
      return this.rows.every((row) => this.isBlank(row));
    }

    /** A new row after this one, or at the end. */
    add(after = null) {
      const row = this.rows[0].cloneNode(true);
      row.querySelector(".mistakes")?.remove();
      for (const column of COLUMNS) {
        this.cell(row, column).removeAttribute("aria-invalid"); // the mistake is the first row's
        this.clear(this.cell(row, column));
      }
      this.table.insertBefore(row, after ? after.nextSibling : null);
      this.renumber();
      return row;
    }

    clear(cell) {
      cell.value = "";
      cell.defaultValue = "";
      cell.removeAttribute("autofocus");
      this.unmark(cell);
      delete cell.dataset.typed;
      delete cell.dataset.typedUnit;
    }

    unmark(cell) {
      const stated = cell.getAttribute("aria-invalid") && document.getElementById(`mistake-${cell.id}`);
      if (stated) {
        const place = stated.closest(".mistakes");
        stated.remove();
        if (place && !place.querySelector(".mistake")) place.remove();
      }
      cell.removeAttribute("aria-invalid");
      cell.removeAttribute("aria-describedby");
    }

    remove(row) {
      const rows = this.rows;
      const place = rows.indexOf(row);
      if (rows.length === 1) for (const column of COLUMNS) this.clear(this.cell(row, column));
      else row.remove();
      this.renumber();
      this.focus(Math.min(place, this.rows.length - 1), "name");
      window.Sluice.say(`Row ${place + 1} deleted`);
    }

    move(row, by) {
      const rows = this.rows;
      const place = rows.indexOf(row) + by;
      if (place < 0 || place >= rows.length) return;
      const focused = document.activeElement;
      this.table.insertBefore(row, by < 0 ? rows[place] : rows[place].nextSibling);
      this.renumber();
      focused.focus();
      window.Sluice.say(`Now row ${place + 1}`);
    }

    /** The stages in the other direction, the ranges of each in their order. */
    reverse() {
      const stages = [];
      let goesOn = false;
      for (const row of this.rows) {
        if (goesOn) stages.at(-1).push(row);
        else stages.push([row]);
        goesOn = this.cell(row, "up_to").value.trim() !== "";
      }
      for (const row of stages.reverse().flat()) this.table.append(row);
      this.renumber();
      window.Sluice.say("Order of the stages reversed");
    }

    /** Numbers, names for readers, and how many stages there are. */
    renumber() {
      let [stages, blank, goesOn] = [0, 0, false];
      this.rows.forEach((row, place) => {
        const name = this.cell(row, "name");
        if (this.isBlank(row)) {
          blank += 1;
          name.placeholder = `stage ${stages + blank}`;
        } else {
          row.classList.toggle("goes-on", goesOn);
          if (!goesOn) stages += 1;
          name.placeholder = goesOn ? "" : `stage ${stages}`;
          blank = 0;
          goesOn = this.cell(row, "up_to").value.trim() !== "";
        }
        this.renumberRow(row, place);
      });
      this.noteNames();
      const count = this.form.querySelector("#stage-count");
      count.textContent = `${stages} of ${this.maxStages} stages`;
      count.classList.toggle("over", stages > this.maxStages);
    }

    /** Say at the cell where a name was there before: answers number the later ones. */
    noteNames() {
      const seen = new Map();
      for (const row of this.rows) {
        row.querySelector(".notes")?.remove();
        const name = this.cell(row, "name").value.trim();
        if (!name || row.classList.contains("goes-on")) continue;
        const count = (seen.get(name) || 0) + 1;
        seen.set(name, count);
        if (count > 1) {
          const note = document.createElement("tr");
          note.className = "notes";
          note.append(document.createElement("td"), document.createElement("td"));
          note.lastChild.colSpan = 4;
          const line = document.createElement("p");
          line.className = "quiet";
          line.textContent = `Stage: an earlier stage has this name; answers call this one “${name} (${count})”.`;
          note.lastChild.append(line);
          row.append(note);
        }
      }
    }

    renumberRow(row, place) {
      row.querySelector(".at").textContent = String(place + 1);
      for (const column of COLUMNS) {
        const cell = this.cell(row, column);
        const stated = document.getElementById(`mistake-${cell.id}`);
        cell.id = `${column}-${place}`;
        cell.setAttribute("aria-label", `Row ${place + 1}, ${WORDS[column]}`);
        if (stated && row.contains(stated)) {
          stated.id = `mistake-${cell.id}`;
          cell.setAttribute("aria-describedby", stated.id);
        }
      }
      for (const button of row.querySelectorAll("[data-do]")) {
        const verb = button.dataset.do;
        button.value = `${verb}.${place}`;
        button.setAttribute("aria-label", `Row ${place + 1}: ${verb === "delete" ? "" : "move "}${verb}`);
      }
    }

    focus(place, column) {
      const row = this.rows[place];
      if (!row) return;
      const cell = this.cell(row, column);
      cell.focus();
      cell.select();
    }

    // --- what happens ---------------------------------------------------------------------------

    onInput(event) {
      const cell = event.target.closest("[data-column]");
      if (!cell) return;
      delete cell.dataset.typed;
      this.unmark(cell);
      this.renumber();
    }

    onClick(event) {
      const button = event.target.closest("[data-do]");
      if (!button) return;
      event.preventDefault();
      this.pasting.forget();
      const row = button.closest("tbody");
      const verb = button.dataset.do;
      if (verb === "add") {
        this.add();
        this.focus(this.rows.length - 1, "name");
      } else if (verb === "reverse") this.reverse();
      else if (verb === "delete") this.remove(row);
      else this.move(row, verb === "up" ? -1 : 1);
    }

    onKey(event) {
      const cell = event.target.closest("[data-column]");
      if (!cell || event.isComposing) return;
      const row = cell.closest("tbody");
      const place = this.rows.indexOf(row);
      const column = cell.dataset.column;
      if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
        event.preventDefault();
        this.move(row, event.key === "ArrowUp" ? -1 : 1);
      } else if (event.ctrlKey || event.metaKey || event.altKey) {
        this.pasting.onKey(event);
      } else if (event.key === "Enter") {
        event.preventDefault();
        if (place === this.rows.length - 1) this.add();
        this.focus(place + 1, event.shiftKey || place < this.rows.length - 2 ? column : "name");
      } else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
        event.preventDefault();
        this.focus(place + (event.key === "ArrowUp" ? -1 : 1), column);
      } else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
        this.onSideways(event, cell, place);
      }
    }

    /** Into the cell beside, where the cursor is at the cell's edge. */
    onSideways(event, cell, place) {
      const goesLeft = event.key === "ArrowLeft";
      const edge = goesLeft ? 0 : cell.value.length;
      if (event.shiftKey || cell.selectionStart !== edge || cell.selectionEnd !== edge) return;
      const shown = COLUMNS.filter((column) => this.cell(this.rows[place], column).offsetParent);
      const beside = shown[shown.indexOf(cell.dataset.column) + (goesLeft ? -1 : 1)];
      if (!beside) return;
      event.preventDefault();
      this.focus(place, beside);
    }

    empty(count) {
      for (const row of this.rows.slice(Math.max(1, count))) row.remove();
      for (const row of this.rows) for (const column of COLUMNS) this.clear(this.cell(row, column));
    }

    chooser(column) {
      return this.table.querySelector(`[data-unit=${column}]`);
    }

    setUnit(column, unit) {
      this.pasting.clearQuestion(column);
      this.chooser(column).value = unit;
      this.units[column] = unit;
    }

    /** Convert what is there. A cell keeps what was typed into it, so that going back restores it. */
    changeUnit(chooser) {
      const column = chooser.dataset.unit;
      if (this.units[column] === Units.UNSPECIFIED) {
        this.setUnit(column, chooser.value);
        for (const row of this.rows) this.pasting.settle(this.cell(row, column));
        window.Sluice.say(`Read as ${chooser.selectedOptions[0].textContent}`);
        return;
      }
      this.convertCells(column, this.units[column], chooser.value);
      window.Sluice.say(`Converted to ${chooser.selectedOptions[0].textContent}`);
    }

    convertCells(column, from, to) {
      this.units[column] = to;
      for (const row of this.rows) {
        const cell = this.cell(row, column);
        if (cell.dataset.typed === undefined) {
          cell.dataset.typed = cell.value;
          cell.dataset.typedUnit = from;
        }
        const {typed, typedUnit} = cell.dataset;
        cell.value = typedUnit === to ? typed : Units.convert(column, typed, typedUnit, to) ?? typed;
      }
    }
  }

  /** The form of an audit with the costs as they stand in the panel now. */
  function auditAddress(form) {
    const given = new FormData(form);
    const source = given.get("source");
    const names = ["profile", "fit"].includes(source) ? [source]
      : ["name", "overhead", "cost", "up_to", "overhead_unit", "cost_unit", "delay"];
    const query = new URLSearchParams(names.flatMap((name) => given.getAll(name).map((value) => [name, value])));
    return `${Sluice.root}/ui/audit?${query}`;
  }

  /** The bytes of a size that was written otherwise. */
  function echoSize(form, text) {
    const bytes = Units.bytes(text);
    const place = form.querySelector("#message-bytes");
    if (!place) return;
    const isSaid = Number.isSafeInteger(bytes) && !/^\s*\d*\s*B?\s*$/i.test(text);
    place.textContent = isSaid ? `= ${String(bytes).replace(/\B(?=(\d{3})+$)/g, "\u202f")} B. ` : "";
  }

  /** One request at a time, and Ctrl+Enter from anywhere on the page. */
  function startForm(form) {
    form.classList.add("with-script");
    const table = new StageTable(form);
    const sends = (event) => {
      if (!form.isConnected) {
        document.removeEventListener("keydown", sends);
      } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.defaultPrevented) {
        event.preventDefault();
        form.requestSubmit();
      }
    };
    document.addEventListener("keydown", sends);
    form.addEventListener("submit", () => {
      for (const button of form.querySelectorAll("[data-send]")) button.disabled = true;
    });
    window.addEventListener("pageshow", () => {
      for (const button of form.querySelectorAll("[data-send]")) button.disabled = false;
    });
    form.querySelector("[data-audit]")?.addEventListener("click", (event) => {
      event.currentTarget.href = auditAddress(form);
    });
    const message = form.querySelector("#message");
    message.addEventListener("input", () => {
      table.unmark(message);
      echoSize(form, message.value);
    });
    echoSize(form, message.value);
    const mistakes = document.getElementById("mistakes");
    if (mistakes) {
      window.Sluice.say(mistakes.textContent.trim().replace(/\s+/g, " "));
    }
  }

  window.Sluice.onPart("#input", startForm);
})();
