// Copies a text that is shown, and counts the seconds while a picture is waited for.
"use strict";

Sluice.onPart("[data-copy]", (button) => {
  const label = button.textContent;
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copy);
    let text = "Copied";
    try {
      await navigator.clipboard.writeText(source.textContent);
    } catch {
      // No permission, or a page without TLS: it is selected, for the keyboard to copy.
      window.getSelection().selectAllChildren(source);
      text = "Selected: copy with Ctrl+C";
    }
    button.textContent = text;
    Sluice.say(text);
    setTimeout(() => { button.textContent = label; }, 2500);
  });
});

Sluice.onPart("[data-waits]", (part) => {
  const place = part.querySelector("[data-elapsed]");
  let timer = 0;

  function start() {
    const began = performance.now();
    Sluice.say(`${part.dataset.waits}…`);
    clearInterval(timer);
    timer = setInterval(() => {
      if (!part.isConnected) {
        clearInterval(timer);
        return;
      }
      place.textContent = `${Math.round((performance.now() - began) / 1000)} s; it takes at most two minutes; leaving this page gives it up`;
    }, 1000);
  }

  if (part.matches("[hx-trigger=load]")) {
    start();
  } else {
    part.addEventListener("htmx:before:request", start);
  }
  part.addEventListener("htmx:finally:request", () => clearInterval(timer));
  part.addEventListener("htmx:error", () => {
    place.textContent = "The server did not answer. Load the page again.";
    Sluice.say(place.textContent);
  });
});
