// The samples of a chart as a table: pages of it, in three orders, each sample with a box to leave it
// out. The server has written the first page; the rest is in the data that the chart draws.
"use strict";

(() => {
  const ROWS = 50;
  const Fit = window.SluiceFit;
  const ORDERS = {
    off: ["farthest off the line first", (one, other) => Math.abs(other.residual ?? 0) - Math.abs(one.residual ?? 0)],
    size: ["by size", (one, other) => one.size - other.size || one.time - other.time],
    time: ["slowest first", (one, other) => other.time - one.time],
  };

  /** Equal samples are one row: they are left out together. */
  function rowsOf(data) {
    const found = new Map();
    for (const [size, time, residual, state] of data.points) {
      const value = `${size}|${time}|${data.stage}`;
      const row = found.get(value) ?? {value, size, time, residual, state, count: 0};
      row.count += 1;
      found.set(value, row);
    }
    return [...found.values()];
  }

  class SampleTable {
    constructor(place) {
      this.place = place;
      this.data = window.Sluice.data(`fit-chart-${place.dataset.samples}`);
      this.rows = rowsOf(this.data);
      this.caption = place.querySelector("caption");
      this.order = "off";
      this.page = 0;
      const actions = place.querySelector(".actions");
      actions.hidden = false;
      this.steps = [...actions.querySelectorAll("[data-page]")];
      this.steps.forEach((button) => button.addEventListener("click", () => this.turn(Number(button.dataset.page))));
      actions.querySelector("[data-order]").addEventListener("change", ({target}) => this.sort(target.value));
      this.sort(this.order);
    }

    sort(order) {
      this.order = order;
      this.page = 0;
      this.rows.sort(ORDERS[order][1]);
      this.show();
    }

    turn(step) {
      this.page += step;
      this.show();
      window.Sluice.say(this.caption.textContent);
    }

    show() {
      const start = this.page * ROWS;
      const shown = this.rows.slice(start, start + ROWS);
      const [order] = ORDERS[this.order];
      this.place.querySelector("tbody").replaceChildren(...shown.map((row) => this.row(row)));
      this.caption.textContent = `${start + 1} to ${start + shown.length} of ${this.caption.dataset.of}, ${order}`;
      for (const button of this.steps) {
        const next = start + Number(button.dataset.page) * ROWS;
        button.disabled = next < 0 || next >= this.rows.length;
      }
    }

    row(one) {
      const row = document.createElement("tr");
      const time = SluiceText.time(one.time);
      const off = one.residual === null ? "–" : SluiceText.signedPercent(one.residual);
      const alike = one.count > 1 ? `${one.count} alike` : "";
      const texts = [SluiceText.bytes(one.size), SluiceText.figure(one.time), off, [Fit.kinds[one.state], alike].filter(Boolean).join(", ")];
      const cells = texts.map((text, place) => {
        const cell = document.createElement("td");
        if (place < 3) cell.className = "number";
        cell.textContent = text;
        return cell;
      });
      row.append(...(this.data.canExclude ? [this.box(one, `${texts[0]}, ${time}`)] : []), ...cells);
      return row;
    }

    box(one, label) {
      const cell = document.createElement("td");
      const box = document.createElement("input");
      Object.assign(box, {type: "checkbox", name: "excluded", value: one.value, checked: Fit.choice().has(one.value)});
      box.setAttribute("form", "again-form");
      box.setAttribute("aria-label", `Leave out ${label}`);
      cell.append(box);
      return cell;
    }
  }

  window.Sluice.onPart("[data-samples]", (place) => new SampleTable(place));
})();
