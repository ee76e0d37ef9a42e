// Copies texts, and makes a PNG of the picture that the server draws.
"use strict";

(() => {
  const SCALE = 2; // pixels of the PNG for each of the picture
  const SHOWN_MS = 2000;

  async function toClipboard(text) {
    if (!navigator.clipboard || !window.isSecureContext) {
      return false;
    }
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      return false; // refused, as some browsers do until they are asked: the selection is left
    }
  }

  /** Put a text on the clipboard; where the browser has none to offer, through a selection. */
  async function copy(place) {
    if (await toClipboard(place.textContent)) {
      return true;
    }
    const range = document.createRange();
    range.selectNodeContents(place);
    const selection = window.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    return document.execCommand("copy");
  }

  Sluice.onPart("[data-copy]", (button) => {
    const label = button.textContent;
    button.hidden = false;
    button.addEventListener("click", async () => {
      const place = document.getElementById(button.dataset.copy);
      const isCopied = await copy(place);
      const text = isCopied ? "Copied" : "Press Ctrl+C";
      button.textContent = text;
      Sluice.say(isCopied ? "Copied" : "The text is selected: copy it with Ctrl+C");
      setTimeout(() => { button.textContent = label; }, SHOWN_MS);
    });
  });

  // The address has all of what is seen; one that cannot be copied is in the browser's own bar.
  Sluice.onPart("[data-copy-link]", (button) => {
    const label = button.textContent;
    button.hidden = false;
    button.addEventListener("click", async () => {
      const text = await toClipboard(location.href) ? "Link copied" : "Copy it from the address bar";
      button.textContent = text;
      Sluice.say(text);
      setTimeout(() => { button.textContent = label; }, SHOWN_MS);
    });
  });

  /** The picture of this address as a canvas. */
  async function drawn(address) {
    const answer = await fetch(address);
    if (!answer.ok) {
      throw new Error("the picture could not be had");
    }
    const source = URL.createObjectURL(await answer.blob());
    try {
      const image = new Image();
      image.src = source;
      await image.decode();
      const canvas = document.createElement("canvas");
      canvas.width = image.naturalWidth * SCALE;
      canvas.height = image.naturalHeight * SCALE;
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      return canvas;
    } finally {
      URL.revokeObjectURL(source);
    }
  }

  function save(blob, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), SHOWN_MS);
  }

  async function saveCanvas(canvas, name) {
    const blob = await new Promise((made) => canvas.toBlob(made, "image/png"));
    if (!blob) {
      throw new Error("the picture is too large for this browser");
    }
    save(blob, name);
  }

  /** The curves of this page, as they stand there. */
  async function saveCharts(name) {
    await SluiceCharts.drawEvery();
    const places = [...document.querySelectorAll(".chart[data-drawn=yes]")];
    if (!places.length) {
      throw new Error("the curves are not drawn yet");
    }
    const backgroundColor = SluiceCharts.colours().panel;
    for (const place of places) {
      const chart = echarts.getInstanceByDom(place);
      const canvas = chart.renderToCanvas({pixelRatio: SCALE, backgroundColor});
      await saveCanvas(canvas, name.replace(/\.png$/, `-${place.dataset.chart}.png`));
    }
  }

  function onPng(item, work) {
    const button = item.querySelector("button");
    item.hidden = false;
    button.addEventListener("click", async () => {
      button.disabled = true;
      Sluice.warn("");
      try {
        await work();
        Sluice.say("PNG saved");
      } catch (error) {
        Sluice.warn(`No PNG: ${error.message}`);
      } finally {
        button.disabled = false;
      }
    });
  }

  Sluice.onPart("[data-png]", (item) => onPng(item, async () => {
    await saveCanvas(await drawn(item.dataset.png), item.dataset.name);
  }));
  Sluice.onPart("[data-png-of-charts]", (item) => onPng(item, () => saveCharts(item.dataset.pngOfCharts)));
})();
