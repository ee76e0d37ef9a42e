// What every page does: it says what has changed, and hands the parts that a swap brought to the
// scripts that bring them to life. Other scripts register with Sluice.onPart(selector, start).
"use strict";

window.Sluice = (() => {
  const starts = [];

  function startIn(root) {
    for (const [selector, start] of starts) {
      for (const part of root.querySelectorAll(selector)) {
        if (part.dataset.started !== "yes") {
          part.dataset.started = "yes";
          start(part);
        }
      }
    }
  }

  /** Call start(part) for every element of this selector, now and after every swap. */
  function onPart(selector, start) {
    starts.push([selector, start]);
    startIn(document);
  }

  /** Say something to those who listen instead of looking. */
  function say(text) {
    const place = document.getElementById("said");
    if (place) {
      place.textContent = "";
      place.textContent = text;
    }
  }

  /** The data that the server wrote into <script type="application/json" id="...">. */
  function data(id) {
    const place = document.getElementById(id);
    return place ? JSON.parse(place.textContent) : null;
  }

  document.addEventListener("htmx:after:swap", () => startIn(document));
  document.addEventListener("DOMContentLoaded", () => startIn(document));
  return {onPart, say, data};
})();
