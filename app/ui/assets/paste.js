// Pasting into the stage table, and cells that hold more than a number: what was read is shown, what
// was not is marked at once, and all of it can be undone.
"use strict";

window.SluicePaste = (() => {
  const Units = window.SluiceUnits;
  const Sheet = window.SluiceSheet;
  const COLUMNS = ["name", "overhead", "cost", "up_to"];
  const TITLES = {overhead: "Overhead", cost: "Cost"};

  function counted(number, one, many = `${one}s`) {
    return `${number} ${number === 1 ? one : many}`;
  }

  function quote(changes) {
    const shown = changes.slice(0, 3).map(([from, to]) => `${from} to ${to}`);
    return shown.join(", ") + (changes.length > 3 ? ", …" : "");
  }

  return class SluicePaste {
    constructor(stages) {
      this.stages = stages;
      this.before = null; // the table as it was before what was pasted last
      const {table, form} = stages;
      this.note = form.querySelector("#pasted");
      table.addEventListener("paste", (event) => this.onPaste(event));
      table.addEventListener("input", () => this.forget());
      table.addEventListener("change", (event) => this.onChange(event));
      form.querySelector("#undo-paste").addEventListener("click", () => this.undo());
    }

    onPaste(event) {
      const cell = event.target.closest("[data-column]");
      const text = event.clipboardData.getData("text/plain");
      if (!cell) return;
      if (!Sheet.isSheet(text)) return this.pasteOne(event, cell, text);
      event.preventDefault();
      const {stages} = this;
      const pasted = Sheet.read(text, cell.dataset.column, stages.units);
      const replaces = pasted.hasHeader || stages.isEmpty();
      this.fill(pasted, replaces ? 0 : stages.rows.indexOf(cell.closest("tbody")), replaces);
    }

    /** One cell takes a cell's place; the browser can undo it. Part of a text goes into the text. */
    pasteOne(event, cell, text) {
      const isCost = cell.dataset.column in TITLES;
      const isCell = /[\r\n]$/.test(text) || (isCost && Units.split(text).number !== "");
      if (!isCell) return;
      event.preventDefault();
      cell.focus();
      cell.select();
      document.execCommand("insertText", false, text.trim());
      this.settle(cell);
    }

    onChange(event) {
      const cell = event.target.closest("[data-column]");
      if (cell) this.settle(cell);
      else this.forget();
    }

    onKey(event) {
      if (!this.before || event.altKey || event.shiftKey || event.key.toLowerCase() !== "z") return;
      event.preventDefault();
      this.undo();
    }

    /** Put pasted rows into the table from this row on; alone in it where they replace all. */
    fill(pasted, place, replaces) {
      const {stages} = this;
      const before = this.snapshot();
      if (replaces) stages.empty(pasted.rows.length);
      for (const [column, unit] of Object.entries(pasted.units)) {
        if (replaces) stages.setUnit(column, unit);
        else this.convert(pasted.rows, column, unit);
      }
      for (const [column, text] of Object.entries(pasted.asked)) if (replaces) this.ask(column, text);
      const filled = pasted.rows.map((given, number) => this.fillRow(stages.rows[place + number] || stages.add(), given));
      if (pasted.rows.some((row) => row.up_to)) stages.form.querySelector("#with-ranges").checked = true;
      stages.renumber();
      const wrong = filled.flat().filter((cell) => this.check(cell)).length;
      stages.focus(Math.max(0, Math.min(place + filled.length, stages.rows.length) - 1), "name");
      this.before = before;
      this.say(this.sentences(pasted, wrong));
    }

    fillRow(row, given) {
      return Object.entries(given).map(([column, text]) => {
        const cell = this.stages.cell(row, column);
        this.stages.clear(cell);
        cell.value = text;
        return cell;
      });
    }

    /** Rows that join others take the units of those; a cell keeps its own where those are not named. */
    convert(rows, column, unit) {
      const ours = this.stages.units[column];
      for (const row of rows) {
        if (Number.isNaN(Units.read(row[column] || "")) || unit === ours) continue;
        row[column] = Units.convert(column, row[column], unit, ours) ?? `${row[column]} ${Units.unitName(column, unit)}`;
      }
    }

    sentences(pasted, wrong) {
      const {rows, changed, notes, asked} = pasted;
      const {stages} = this;
      const found = [wrong ? `${counted(rows.length, "row")} pasted, ${counted(wrong, "cell")} not read.`
        : `${counted(rows.length, "row")} pasted.`];
      const count = stages.form.querySelector("#stage-count");
      if (count.classList.contains("over")) found.push(`That makes ${count.textContent}: ${stages.maxStages} is the limit.`);
      if (changed.length > 0) found.push(`${counted(changed.length, "number was", "numbers were")} rewritten: ${quote(changed)}.`);
      found.push(...notes, ...Object.keys(asked).map((column) => this.question(column, asked[column])));
      const bare = Object.keys(TITLES).filter((column) => rows.some((row) => row[column])
        && !pasted.units[column] && stages.units[column] !== Units.UNSPECIFIED);
      if (bare.length > 0) {
        const names = bare.map((column) => stages.chooser(column).selectedOptions[0].textContent);
        found.push(`Read as ${names.join(" and ")}, for no unit was pasted. Another unit now converts the numbers: `
          + "to read them in another, undo, choose it, and paste again.");
      }
      return found;
    }

    say(sentences, canUndo = this.before !== null) {
      this.note.hidden = sentences.length === 0;
      this.note.querySelector("p").textContent = sentences.join(" ");
      this.note.querySelector("button").hidden = !canUndo;
      window.Sluice.say(sentences.join(" "));
    }

    // --- one cell ---------------------------------------------------------------------------------

    /** A cell that was left: a number with a unit becomes one of its column; what is not read is marked. */
    settle(cell) {
      const {column} = cell.dataset;
      const text = cell.value.trim();
      if (!(column in TITLES) || !text || this.check(cell, this.rewritten(text, column))) return;
      const read = this.rewritten(text, column);
      const {number, unit: name} = Units.split(read);
      if (!name && number === text) return;
      const {stages} = this;
      const {unit} = name ? Units.named(name) : {unit: stages.units[column]};
      if (stages.units[column] === Units.UNSPECIFIED) {
        cell.value = read;
        return;
      }
      if (unit !== stages.units[column] && this.isAlone(cell)) stages.setUnit(column, unit);
      const made = unit === stages.units[column] ? number : Units.convert(column, number, unit, stages.units[column]);
      if (made === null) return;
      cell.value = made;
      cell.dataset.typed = number;
      cell.dataset.typedUnit = unit;
      this.say([`“${text}” was read as ${made} ${Units.unitName(column, stages.units[column])}.`], false);
    }

    /** A cell's text with its number as a plain one, as far as that is certain in its column. */
    rewritten(text, column) {
      const {number} = Units.split(text);
      const others = this.stages.rows.map((row) => Units.split(this.stages.cell(row, column).value).number);
      const plain = Units.plain(number, Units.decimalSign([...others, number]));
      return plain === null ? text : text.replace(number, plain);
    }

    isAlone(cell) {
      return this.stages.rows.every((row) => {
        const other = this.stages.cell(row, cell.dataset.column);
        return other === cell || other.value.trim() === "";
      });
    }

    /** Mark a cell that is not read, and say whether it is one. */
    check(cell, text = cell.value.trim()) {
      const {column} = cell.dataset;
      const mistake = column in TITLES && text ? Units.wrong(text, column) : "";
      if (mistake) this.mark(cell, `${TITLES[column]}: ${mistake}.`);
      return mistake !== "";
    }

    mark(cell, text) {
      this.stages.unmark(cell);
      const row = cell.closest("tbody");
      let place = row.querySelector(".mistakes");
      if (!place) {
        place = document.createElement("tr");
        place.className = "mistakes";
        place.append(document.createElement("td"), document.createElement("td"));
        place.lastChild.colSpan = 4;
        row.insertBefore(place, row.querySelector(".notes"));
      }
      place.lastElementChild.append(this.mistake(cell, text));
    }

    mistake(field, text) {
      const note = document.createElement("p");
      note.className = "mistake";
      note.id = `mistake-${field.id}`;
      note.textContent = text;
      field.setAttribute("aria-invalid", "true");
      field.setAttribute("aria-describedby", note.id);
      return note;
    }

    // --- a column whose unit is not known ---------------------------------------------------------

    question(column, text) {
      const asked = text ? `which unit is “${Units.shown(text)}”?` : "in which unit is this bandwidth?";
      return `${TITLES[column]}: ${asked} Choose it above.`;
    }

    ask(column, text) {
      const {stages} = this;
      this.clearQuestion(column);
      const chooser = stages.chooser(column);
      chooser.prepend(new Option("which unit?", Units.UNSPECIFIED));
      chooser.value = stages.units[column] = Units.UNSPECIFIED;
      stages.form.querySelector("#unit-mistakes").append(this.mistake(chooser, this.question(column, text)));
    }

    clearQuestion(column) {
      const chooser = this.stages.chooser(column);
      chooser.querySelector(`[value=${Units.UNSPECIFIED}]`)?.remove();
      document.getElementById(`mistake-${chooser.id}`)?.remove();
      chooser.removeAttribute("aria-invalid");
      chooser.removeAttribute("aria-describedby");
    }

    // --- undo -------------------------------------------------------------------------------------

    snapshot() {
      const {stages} = this;
      return {
        rows: stages.rows.map((row) => Object.fromEntries(COLUMNS.map((one) => [one, stages.cell(row, one).value]))),
        units: {...stages.units},
        ranges: stages.form.querySelector("#with-ranges").checked,
      };
    }

    forget() {
      this.before = null;
      this.note.querySelector("button").hidden = true;
    }

    undo() {
      const {stages, before} = this;
      if (!before) return;
      stages.empty(before.rows.length);
      for (const [column, unit] of Object.entries(before.units)) {
        if (unit === Units.UNSPECIFIED) this.ask(column, "");
        else stages.setUnit(column, unit);
      }
      before.rows.forEach((given, number) => this.fillRow(stages.rows[number] || stages.add(), given).forEach((cell) => this.check(cell)));
      stages.form.querySelector("#with-ranges").checked = before.ranges;
      stages.renumber();
      stages.focus(0, "name");
      this.before = null;
      this.say(["Pasting undone."]);
    }
  };
})();
