// Work that is waited for: a table, an export, an audit, a comparison. It shows how far it has come,
// puts the result in its place when there is one, and says so.
"use strict";

(() => {
  const QUARTERS = 4;

  /** Move the focus from a removed part to the one that replaced it. */
  async function exchange(part, address, selector) {
    const hadFocus = part.contains(document.activeElement);
    const target = selector ? document.querySelector(selector) : part;
    const before = target.previousElementSibling;
    const parent = target.parentElement;
    await htmx.ajax("GET", address, {target, swap: "outerHTML", ...(selector ? {select: selector} : {})});
    const come = before ? before.nextElementSibling : parent.firstElementChild;
    if (hadFocus && come && document.activeElement === document.body) {
      come.tabIndex = -1;
      come.focus({preventScroll: true});
    }
  }

  class Work {
    constructor(part) {
      this.part = part;
      this.bar = part.querySelector("progress");
      this.unit = part.dataset.unit;
      this.quarter = 0;
      this.follower = new SluiceJob.Follower(part, part.dataset.work, {
        reported: (job) => this.reported(job),
        ended: () => exchange(part, part.dataset.part, part.dataset.into),
      });
      part.querySelector("form")?.addEventListener("submit", () => this.stopping());
      this.follower.follow();
    }

    reported(job) {
      const {steps_done: done, steps_total: total} = job.progress;
      if (job.cancel_requested) {
        this.stopping();
      }
      if (!total) {
        return;
      }
      const text = SluiceJob.formatSteps(done, total, this.unit);
      this.follower.put("steps", text);
      this.bar.max = total;
      this.bar.value = done;
      const quarter = Math.floor((QUARTERS * done) / total);
      if (quarter > this.quarter && done < total) {
        Sluice.say(text);
      }
      this.quarter = quarter;
    }

    stopping() {
      const button = this.part.querySelector("[data-cancel]");
      if (button && button.textContent !== "Stopping…") {
        button.textContent = "Stopping…";
        this.follower.put("word", "stopping…");
      }
    }
  }

  Sluice.onPart("[data-work]", (part) => new Work(part));
})();
