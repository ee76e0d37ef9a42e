// The timeline: time can be zoomed and moved by wheel, keys, buttons and dragging, and a block that
// is pointed at tells its size and times. Rows keep their height and letters their shape: only the
// time axis is stretched. What is shown stands in the address, so that a link shows the same.
"use strict";

(() => {
  const SHEET = 960; // units of the picture, as app/plots/timeline_plan.py has them
  const MARGIN = 24;
  const ROOM = SHEET - 2 * MARGIN;
  const MOST = 2000; // times
  const STEP = 1.6;
  const NAMESPACE = "http://www.w3.org/2000/svg";
  const UNITS = [["s", 1e6], ["ms", 1e3], ["µs", 1], ["ns", 1e-3]];

  class Timeline {
    constructor(part) {
      this.part = part;
      this.frame = part.querySelector(".timeline-picture");
      this.svg = this.frame.querySelector("svg");
      this.span = Number(part.dataset.spanUs);
      this.height = this.svg.viewBox.baseVal.height;
      this.left = 0;
      this.scale = 1;
      this.svg.setAttribute("preserveAspectRatio", "none");
      this.pinned = [...this.svg.querySelectorAll(".legend, .labels text, .heading, .title, .note, .schedule > .muted:not(.tick)")];
      this.hatches = [...this.svg.querySelectorAll("pattern")];
      this.placed = [...this.svg.querySelectorAll(".size, .bound-label")];
      this.axes = [...this.svg.querySelectorAll(".schedule")].map((one) => this.axisOf(one));
      this.listen();
      this.restore();
    }

    axisOf(schedule) {
      const own = (selector) => [...schedule.querySelectorAll(`:scope > ${selector}`)];
      const grid = own("line.grid");
      const ticks = own("text.tick");
      const group = document.createElementNS(NAMESPACE, "g");
      if (grid.length) {
        grid[0].before(group);
      }
      return {
        group,
        marks: [...grid, ...ticks],
        lines: grid.slice(0, 1).map((line) => [line.getAttribute("y1"), line.getAttribute("y2")]),
        heights: [...new Set(ticks.map((tick) => tick.getAttribute("y")))],
      };
    }

    // --- what is shown --------------------------------------------------------------------------

    show(left, scale) {
      this.scale = Math.min(MOST, Math.max(1, scale));
      const width = SHEET / this.scale;
      this.left = Math.min(SHEET - width, Math.max(0, left));
      const isWhole = this.scale === 1;
      this.svg.setAttribute("viewBox", `${this.left} 0 ${width} ${this.height}`);
      this.part.classList.toggle("zoomed", !isWhole);
      const pinned = isWhole ? "" : `translate(${this.left} 0) scale(${1 / this.scale} 1)`;
      this.pinned.forEach((one) => one.setAttribute("transform", pinned));
      this.placed.forEach((one) => this.place(one, Number(one.getAttribute("x"))));
      this.hatches.forEach((one) => one.setAttribute("patternTransform", `scale(${1 / this.scale} 1) rotate(45)`));
      this.axes.forEach((axis) => this.draw(axis, isWhole));
      this.part.querySelectorAll("[data-zoom=out], [data-zoom=all]").forEach((button) => {
        button.disabled = isWhole;
      });
    }

    place(text, x) {
      const whole = this.scale === 1;
      text.setAttribute("transform", whole ? "" : `translate(${x * (1 - 1 / this.scale)} 0) scale(${1 / this.scale} 1)`);
    }

    draw(axis, isWhole) {
      axis.group.replaceChildren();
      axis.marks.forEach((mark) => mark.classList.toggle("unshown", !isWhole));
      if (isWhole || !(this.span > 0)) {
        return;
      }
      const [from, until] = this.window();
      const step = niceStep((until - from) / 6);
      const [unit, factor] = UNITS.find(([, us]) => until >= us) || UNITS[3];
      for (let at = Math.ceil(from / step) * step; at <= until; at += step) {
        const x = MARGIN + ROOM * (at / this.span);
        axis.lines.forEach(([y1, y2]) => axis.group.append(made("line", {x1: x, x2: x, y1, y2, class: "grid"})));
        axis.heights.forEach((y) => {
          const text = made("text", {x, y, class: "tick middle"});
          text.textContent = `${Number((at / factor).toPrecision(9))} ${unit}`;
          this.place(text, x);
          axis.group.append(text);
        });
      }
    }

    /** The first and the last moment that are shown, µs. */
    window() {
      const at = (x) => Math.min(this.span, Math.max(0, (this.span * (x - MARGIN)) / ROOM));
      return [at(this.left), at(this.left + SHEET / this.scale)];
    }

    zoom(factor, share = 0.5) {
      const width = SHEET / this.scale;
      const scale = Math.min(MOST, Math.max(1, this.scale * factor));
      this.show(this.left + share * (width - SHEET / scale), scale);
      this.tell();
    }

    move(share) {
      this.show(this.left + (share * SHEET) / this.scale, this.scale);
      this.tell();
    }

    all() {
      this.show(0, 1);
      this.tell();
    }

    // --- in words, and in the address -----------------------------------------------------------

    tell() {
      clearTimeout(this.telling);
      this.telling = setTimeout(() => {
        const place = new URL(location.href);
        const shown = this.window();
        ["from_us", "to_us"].forEach((name, i) => {
          if (this.scale === 1) {
            place.searchParams.delete(name);
          } else {
            place.searchParams.set(name, String(Number(shown[i].toPrecision(6))));
          }
        });
        history.replaceState(history.state, "", place);
        const words = this.scale === 1 ? "all of it" : shown.map(timeText).join(" to ");
        this.part.querySelector(".timeline-window").textContent = words;
        Sluice.say(`Timeline: ${words}`);
      }, 250);
    }

    restore() {
      const given = new URL(location.href).searchParams;
      const [from, until] = ["from_us", "to_us"].map((name) => Number(given.get(name) ?? NaN));
      if (this.span > 0 && until > from && from >= 0) {
        const place = (at) => MARGIN + (ROOM * at) / this.span;
        this.show(from > 0 ? place(from) : 0, SHEET / (place(until) - (from > 0 ? place(from) : 0)));
        this.part.querySelector(".timeline-window").textContent = this.window().map(timeText).join(" to ");
      } else {
        this.show(0, 1);
      }
    }

    // --- wheel, keys, pointer -------------------------------------------------------------------

    listen() {
      const frame = this.frame;
      frame.addEventListener("wheel", (event) => this.wheel(event), {passive: false});
      frame.addEventListener("keydown", (event) => this.key(event));
      frame.addEventListener("pointerdown", (event) => this.grab(event));
      frame.addEventListener("pointermove", (event) => this.point(event));
      frame.addEventListener("pointerleave", () => this.hideTip());
      frame.addEventListener("scroll", () => this.hideTip());
      frame.addEventListener("dblclick", (event) => this.zoom(STEP * STEP, this.shareAt(event)));
      for (const button of this.part.querySelectorAll("[data-zoom]")) {
        button.hidden = false;
        button.addEventListener("click", () => {
          ({in: () => this.zoom(STEP), out: () => this.zoom(1 / STEP), all: () => this.all()})[button.dataset.zoom]();
        });
      }
      // A title inside a picture would show a second time, later and smaller.
      for (const title of this.svg.querySelectorAll("g > title")) {
        title.parentElement.dataset.told = title.textContent;
        title.remove();
      }
    }

    shareAt(event) {
      const box = this.svg.getBoundingClientRect();
      return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    }

    wheel(event) {
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        this.zoom(Math.exp(-event.deltaY / 300), this.shareAt(event));
      } else if (this.scale > 1 && Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        this.move(event.deltaX / 1000);
      }
    }

    key(event) {
      const acts = {
        "+": () => this.zoom(STEP), "=": () => this.zoom(STEP), "-": () => this.zoom(1 / STEP),
        "0": () => this.all(), ArrowLeft: () => this.move(-0.1), ArrowRight: () => this.move(0.1),
      };
      if (acts[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        acts[event.key]();
      }
    }

    grab(event) {
      if (event.button !== 0 || this.scale === 1) {
        return;
      }
      const [left, startX] = [this.left, event.clientX];
      const width = this.svg.getBoundingClientRect().width;
      const drag = (moved) => {
        this.show(left - ((moved.clientX - startX) / width) * (SHEET / this.scale), this.scale);
      };
      const drop = () => {
        this.frame.removeEventListener("pointermove", drag);
        this.tell();
      };
      this.frame.setPointerCapture(event.pointerId);
      this.frame.addEventListener("pointermove", drag);
      this.frame.addEventListener("pointerup", drop, {once: true});
      this.frame.addEventListener("pointercancel", drop, {once: true});
    }

    point(event) {
      const found = event.target.closest?.("[data-told]");
      if (!found || !this.svg.contains(found)) {
        this.hideTip();
        return;
      }
      if (this.pointed !== found) {
        this.pointed?.classList.remove("pointed");
        this.pointed = found;
        found.classList.add("pointed");
      }
      const row = found.closest(".stage");
      const name = row && row !== found ? row.dataset.told.split(/[:,] /)[0] : "";
      const tip = this.part.querySelector(".timeline-tip");
      tip.textContent = name ? `${name}\n${found.dataset.told}` : found.dataset.told;
      tip.hidden = false;
      const [box, size] = [this.part.getBoundingClientRect(), tip.getBoundingClientRect()];
      const x = Math.min(event.clientX - box.left + 14, box.width - size.width - 4);
      const y = event.clientY - box.top - size.height - 12;
      tip.style.left = `${Math.max(0, x)}px`;
      tip.style.top = `${y < 0 ? event.clientY - box.top + 20 : y}px`;
    }

    hideTip() {
      this.pointed?.classList.remove("pointed");
      this.pointed = null;
      this.part.querySelector(".timeline-tip").hidden = true;
    }
  }

  function made(name, attributes) {
    const element = document.createElementNS(NAMESPACE, name);
    Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
    return element;
  }

  function niceStep(least) {
    const power = 10 ** Math.floor(Math.log10(least));
    return [1, 2, 5, 10].map((one) => one * power).find((one) => one >= least * (1 - 1e-9));
  }

  function timeText(us) {
    const [unit, factor] = UNITS.find(([, size]) => us >= size) || UNITS[2];
    return `${Number((us / factor).toPrecision(5))} ${unit}`;
  }

  Sluice.onPart(".timeline", (part) => new Timeline(part));
})();
