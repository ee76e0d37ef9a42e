// The timeline: time can be zoomed and moved by wheel, keys, buttons and dragging, and a block that
// is pointed at shows its size and times. Rows keep their height and letters their shape: only the
// time axis is stretched. Where blocks are merged into runs the server draws a stretch that is zoomed
// into anew, so that they come apart. What is shown stands in the address, so that a link shows the same.
"use strict";

(() => {
  const SHEET = 960; // units of the picture, as app/plots/timeline_plan.py has them
  const MARGIN = 24;
  const ROOM = SHEET - 2 * MARGIN;
  const MAX = 2000; // times
  const MAX_CLOSER = 100000; // where the server draws it closer
  const STEP = 1.6;
  const NAMESPACE = "http://www.w3.org/2000/svg";
  const UNITS = [["s", 1e6], ["ms", 1e3], ["µs", 1], ["ns", 1e-3]];

  /** One drawing of the schedule: it shows `from` to `to` of the time, µs. */
  class Picture {
    constructor(svg, data) {
      this.svg = svg;
      [this.from, this.to] = [Number(data.fromUs), Number(data.toUs)];
      this.isMerged = data.merged === "yes";
      this.height = svg.viewBox.baseVal.height;
      svg.setAttribute("preserveAspectRatio", "none");
      this.pinned = [...svg.querySelectorAll(".legend, .labels, .heading, .title, .note, .schedule > .muted:not(.tick)")];
      this.hatches = [...svg.querySelectorAll("pattern")];
      this.placed = [...svg.querySelectorAll(".size, .bound-label")];
      this.axes = [...svg.querySelectorAll(".schedule")].map((one) => this.axisOf(one));
      // A title inside a picture would show a second time, later and smaller.
      for (const title of svg.querySelectorAll("g > title")) {
        title.parentElement.dataset.tip = title.textContent;
        title.remove();
      }
    }

    axisOf(schedule) {
      const own = (selector) => [...schedule.querySelectorAll(`:scope > ${selector}`)];
      const grid = own("line.grid");
      const ticks = own("text.tick");
      const group = document.createElementNS(NAMESPACE, "g");
      schedule.querySelector(":scope > .stage")?.before(group);
      return {
        group,
        marks: [...grid, ...ticks],
        lines: grid.slice(0, 1).map((line) => [line.getAttribute("y1"), line.getAttribute("y2")]),
        heights: [...new Set(ticks.map((tick) => tick.getAttribute("y")))],
      };
    }

    /** Where a time stands in this drawing. */
    place(us) {
      return MARGIN + ROOM * ((us - this.from) / (this.to - this.from));
    }

    covers([from, until]) {
      const slack = 1e-9 * (this.to - this.from);
      return from >= this.from - slack && until <= this.to + slack;
    }

    /** Show `width` of this drawing from `left` on; `shown` are the times at both ends. */
    show(left, width, shown) {
      this.left = left;
      this.scale = SHEET / width;
      this.svg.setAttribute("viewBox", `${left} 0 ${width} ${this.height}`);
      const isWhole = shown === null;
      const pinned = isWhole ? "" : `translate(${left} 0) scale(${1 / this.scale} 1)`;
      this.pinned.forEach((one) => one.setAttribute("transform", pinned));
      this.placed.forEach((one) => this.unstretch(one, Number(one.getAttribute("x"))));
      this.hatches.forEach((one) => one.setAttribute("patternTransform", `scale(${1 / this.scale} 1) rotate(45)`));
      this.axes.forEach((axis) => this.draw(axis, shown));
    }

    unstretch(text, x) {
      text.setAttribute("transform", this.scale === 1 ? "" : `translate(${x * (1 - 1 / this.scale)} 0) scale(${1 / this.scale} 1)`);
    }

    draw(axis, shown) {
      axis.group.replaceChildren();
      axis.marks.forEach((mark) => mark.classList.toggle("unshown", shown !== null));
      if (shown === null) {
        return;
      }
      const [from, until] = shown;
      const step = niceStep((until - from) / 6);
      const [unit, factor] = UNITS.find(([, us]) => until >= us) || UNITS[3];
      for (let i = Math.ceil(from / step); i * step <= until; i += 1) {
        const x = this.place(i * step);
        axis.lines.forEach(([y1, y2]) => axis.group.append(made("line", {x1: x, x2: x, y1, y2, class: "grid"})));
        axis.heights.forEach((y) => {
          const text = made("text", {x, y, class: "tick middle"});
          text.textContent = `${Number(((i * step) / factor).toPrecision(12))} ${unit}`;
          this.unstretch(text, x);
          axis.group.append(text);
        });
      }
    }
  }

  class Timeline {
    constructor(part) {
      this.part = part;
      this.frame = part.querySelector(".timeline-picture");
      this.whole = new Picture(this.frame.querySelector("svg"), part.dataset);
      this.closer = null;
      this.span = Number(part.dataset.spanUs);
      // What is drawn block by block cannot be seen better; runs are drawn anew, closer.
      this.maxScale = this.whole.isMerged ? MAX_CLOSER : MAX;
      this.left = 0;
      this.scale = 1;
      this.listen();
      this.restore();
    }

    // --- what is shown --------------------------------------------------------------------------

    show(left, scale) {
      this.scale = Math.min(this.maxScale, Math.max(1, scale));
      const width = SHEET / this.scale;
      this.left = Math.min(SHEET - width, Math.max(0, left));
      const isWhole = this.scale === 1;
      const shown = isWhole || !(this.span > 0) ? null : this.window();
      const best = shown && this.closer?.covers(shown) ? this.closer : this.whole;
      for (const picture of [this.whole, this.closer].filter(Boolean)) {
        picture.svg.classList.toggle("unshown", picture !== best);
      }
      if (best === this.whole) {
        best.show(this.left, width, shown);
      } else {
        const stretch = this.span / (best.to - best.from);
        best.show(best.place(this.timeAt(this.left)), width * stretch, shown);
      }
      this.part.classList.toggle("zoomed", !isWhole);
      this.part.querySelectorAll("[data-zoom=out], [data-zoom=all]").forEach((button) => {
        button.disabled = isWhole;
      });
      this.best = best;
    }

    timeAt(x) {
      return (this.span * (x - MARGIN)) / ROOM;
    }

    /** The first and the last time that are shown, µs. */
    window() {
      const at = (x) => Math.min(this.span, Math.max(0, this.timeAt(x)));
      return [at(this.left), at(this.left + SHEET / this.scale)];
    }

    zoom(factor, share = 0.5) {
      const width = SHEET / this.scale;
      const scale = Math.min(this.maxScale, Math.max(1, this.scale * factor));
      this.show(this.left + share * (width - SHEET / scale), scale);
      this.announce();
    }

    move(share) {
      this.show(this.left + (share * SHEET) / this.scale, this.scale);
      this.announce();
    }

    all() {
      this.show(0, 1);
      this.announce();
    }

    // --- a closer drawing, where runs are merged ------------------------------------------------

    /** Have the stretch that is shown drawn anew where that splits a run into its fragments. */
    async lookCloser() {
      this.looking?.abort();
      const isEnough = this.best !== this.whole && (!this.best.isMerged || this.best.scale < 3);
      if (this.scale === 1 || !this.whole.isMerged || isEnough) {
        this.showCloserState("");
        return;
      }
      const looking = new AbortController();
      this.looking = looking;
      const [from, until] = this.window();
      const beside = (until - from) / 2; // on each side, for moving a little
      const place = new URL(this.part.dataset.closer, location.href);
      place.searchParams.set("from_us", String(Math.max(0, from - beside)));
      place.searchParams.set("to_us", String(Math.min(this.span, until + beside)));
      this.showCloserState(" · drawing it closer …");
      try {
        const response = await fetch(place, {signal: looking.signal, headers: {Accept: "text/html"}});
        if (response.status === 503) {
          this.showCloserState(" · busy, trying again …");
          const wait = 1000 * Number(response.headers.get("Retry-After") || 2);
          setTimeout(() => !looking.signal.aborted && this.part.isConnected && this.lookCloser(), wait);
          return;
        }
        const text = response.ok ? await response.text() : "";
        const found = new DOMParser().parseFromString(text, "text/html").querySelector(".timeline");
        if (!found || looking.signal.aborted) {
          this.showCloserState(found ? "" : " · a closer drawing could not be had");
          return;
        }
        this.closer?.svg.remove();
        const svg = document.adoptNode(found.querySelector("svg"));
        this.frame.append(svg);
        this.closer = new Picture(svg, found.dataset);
        this.hideTip();
        this.show(this.left, this.scale);
        this.showCloserState("");
      } catch (error) {
        if (error.name !== "AbortError") {
          this.showCloserState(" · a closer drawing could not be had");
        }
      }
    }

    showCloserState(text) {
      this.part.querySelector(".timeline-closing").textContent = text;
    }

    // --- the text, and the address -----------------------------------------------------------

    announce() {
      clearTimeout(this.announcing);
      this.announcing = setTimeout(() => {
        const place = new URL(location.href);
        const shown = this.window();
        ["from_us", "to_us"].forEach((name, i) => {
          if (this.scale === 1) {
            place.searchParams.delete(name);
          } else {
            place.searchParams.set(name, String(Number(shown[i].toPrecision(6 + this.digits()))));
          }
        });
        history.replaceState(history.state, "", place);
        const text = this.windowText();
        this.part.querySelector(".timeline-window").textContent = text;
        Sluice.say(`Timeline: ${text}`);
        this.lookCloser();
      }, 250);
    }

    /** How many more digits a closer look needs. */
    digits() {
      return Math.ceil(Math.log10(this.scale));
    }

    windowText() {
      const shown = this.window().map((us) => SluiceText.time(us, Math.min(15, 4 + this.digits())));
      return this.scale === 1 ? "all of it" : shown.join(" to ");
    }

    restore() {
      const given = new URL(location.href).searchParams;
      const [from, until] = ["from_us", "to_us"].map((name) => Number(given.get(name) ?? NaN));
      if (this.span > 0 && until > from && from >= 0) {
        const place = (at) => MARGIN + (ROOM * at) / this.span;
        this.show(from > 0 ? place(from) : 0, SHEET / (place(until) - (from > 0 ? place(from) : 0)));
        this.part.querySelector(".timeline-window").textContent = this.windowText();
        this.lookCloser();
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
    }

    shareAt(event) {
      const box = this.best.svg.getBoundingClientRect();
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
      const width = this.best.svg.getBoundingClientRect().width;
      const drag = (moved) => {
        this.show(left - ((moved.clientX - startX) / width) * (SHEET / this.scale), this.scale);
      };
      const drop = () => {
        this.frame.removeEventListener("pointermove", drag);
        this.announce();
      };
      this.frame.setPointerCapture(event.pointerId);
      this.frame.addEventListener("pointermove", drag);
      this.frame.addEventListener("pointerup", drop, {once: true});
      this.frame.addEventListener("pointercancel", drop, {once: true});
    }

    point(event) {
      const found = event.target.closest?.("[data-tip]");
      if (!found || !this.frame.contains(found)) {
        this.hideTip();
        return;
      }
      if (this.pointed !== found) {
        this.unmark();
        this.pointed = found;
        found.classList.add("pointed");
        this.markFragment(found);
      }
      const row = found.closest(".stage");
      const name = row && row !== found ? row.dataset.tip.split(/[:,] /)[0] : "";
      const tip = this.part.querySelector(".timeline-tip");
      tip.textContent = name ? `${name}\n${found.dataset.tip}` : found.dataset.tip;
      tip.hidden = false;
      const [box, size] = [this.part.getBoundingClientRect(), tip.getBoundingClientRect()];
      const x = Math.min(event.clientX - box.left + 14, box.width - size.width - 4);
      const y = event.clientY - box.top - size.height - 12;
      tip.style.left = `${Math.max(0, x)}px`;
      tip.style.top = `${y < 0 ? event.clientY - box.top + 20 : y}px`;
    }

    /** Mark the same fragment in every stage of its schedule, and dim the others. */
    markFragment(found) {
      const number = /^fragment \d+ of /.exec(found.dataset.tip)?.[0];
      if (!number) {
        return;
      }
      for (const block of found.closest(".schedule")?.querySelectorAll(".block") ?? []) {
        const isSame = block.dataset.tip?.startsWith(number);
        block.classList.toggle("pointed", isSame);
        block.classList.toggle("dimmed", !isSame);
      }
    }

    unmark() {
      this.frame.querySelectorAll(".pointed, .dimmed").forEach((one) => one.classList.remove("pointed", "dimmed"));
    }

    hideTip() {
      this.unmark();
      this.pointed = null;
      this.part.querySelector(".timeline-tip").hidden = true;
    }
  }

  function made(name, attributes) {
    const element = document.createElementNS(NAMESPACE, name);
    Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
    return element;
  }

  function niceStep(minStep) {
    const power = 10 ** Math.floor(Math.log10(minStep));
    return [1, 2, 5, 10].map((one) => one * power).find((one) => one >= minStep * (1 - 1e-9));
  }

  Sluice.onPart(".timeline", (part) => new Timeline(part));

  // A slider has the binary logarithm of its factor; what is beside it, and read aloud, is the factor.
  Sluice.onPart(".slide", (part) => {
    const slider = part.querySelector("input");
    const show = () => {
      const factor = `×${Number((2 ** slider.value).toPrecision(3))}`;
      part.querySelector("output").textContent = factor;
      slider.setAttribute("aria-valuetext", factor);
    };
    slider.addEventListener("input", show);
    slider.form.addEventListener("reset", () => setTimeout(show));
    show();
  });
})();
