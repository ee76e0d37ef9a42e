// What every page does: it announces what has changed, shows when the service is silent, and hands the
// parts that a swap brought to the scripts that bring them to life. Other scripts register with
// Sluice.onPart(selector, start).
"use strict";

window.Sluice = (() => {
  const starts = [];

  function startIn(root) {
    for (const [selector, start, begun] of starts) {
      for (const part of root.querySelectorAll(selector)) {
        if (!begun.has(part)) {
          begun.add(part);
          part.dataset.started = "yes"; // for those who wait for it
          start(part);
        }
      }
    }
  }

  /** The path below which a proxy offers the service, "" where it is the host's own. */
  const root = document.documentElement.dataset.root ?? "";

  /** Call start(part) for every element of this selector, now and after every swap. */
  function onPart(selector, start) {
    starts.push([selector, start, new WeakSet()]);
    startIn(document);
  }

  /** Announce a text to screen readers. */
  function say(text) {
    const place = document.getElementById("announcement");
    if (place) {
      place.textContent = "";
      place.textContent = text;
    }
  }

  /** Show what went wrong, at the foot of the window; "" takes it away again. */
  function warn(text) {
    const place = document.getElementById("trouble");
    if (place) {
      place.textContent = text;
    }
  }

  /** The data that the server wrote into <script type="application/json" id="...">. */
  function data(id) {
    const place = document.getElementById(id);
    return place ? JSON.parse(place.textContent) : null;
  }

  // A swap takes a part out of a page; what that page's head loads comes along, each file once.
  function loadHead(text) {
    if (!text.includes("<head>")) {
      return;
    }
    const wanted = new DOMParser().parseFromString(text, "text/html").head;
    for (const [selector, address] of [["link[rel=stylesheet]", "href"], ["script[src]", "src"]]) {
      const here = [...document.querySelectorAll(selector)].map((one) => one.getAttribute(address));
      for (const one of wanted.querySelectorAll(selector)) {
        if (!here.includes(one.getAttribute(address))) {
          document.head.append(copyOf(one));
        }
      }
    }
  }

  function copyOf(element) {
    const made = document.createElement(element.localName);
    for (const {name, value} of element.attributes) {
      made.setAttribute(name, value);
    }
    made.async = false; // in their order, as `defer` has it
    return made;
  }

  // Move the focus from a removed part to the one that replaced it.
  function keepFocus(target) {
    if (target?.id === "main" && document.activeElement === document.body) {
      document.getElementById("main")?.focus({preventScroll: true});
    }
  }

  // After a question the focus goes to the heading of the result, also over the page of a job; after
  // a link the page begins at its top.
  const ASKED = "sluice.asked";
  function arrive(heading) {
    const focused = document.activeElement;
    if (sessionStorage.getItem(ASKED) && (focused === document.body || focused.id === "main")) {
      heading.focus();
    }
    if (!heading.closest("[data-open=yes]")) {
      sessionStorage.removeItem(ASKED);
    }
  }

  document.addEventListener("htmx:before:swap", ({detail}) => loadHead(detail.ctx.text ?? ""));
  document.addEventListener("htmx:after:swap", ({detail}) => {
    warn("");
    startIn(document);
    keepFocus(detail.ctx.target);
  });
  document.addEventListener("htmx:error", () => {
    warn("The service does not answer. What you entered is still here: try again in a moment.");
  });
  document.addEventListener("DOMContentLoaded", () => startIn(document));
  document.addEventListener("submit", ({target}) => target.id === "input" && sessionStorage.setItem(ASKED, "yes"));
  onPart("[data-arrived]", arrive);
  onPart("[data-announce]", (part) => say(part.dataset.announce));
  return {onPart, say, warn, data, root};
})();
