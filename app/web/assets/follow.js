// Follows a job by the service's events, and says what it has come to without saying too much.
"use strict";

window.SluiceJob = (() => {
  const AGAIN_MS = 3000; // where the browser itself has given up
  const TICK_MS = 100;
  const ENDS = ["done", "failed", "cancelled"];

  function secondsText(s) {
    return s < 60 ? `${s.toFixed(1)} s` : `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  }

  /** How far the counted part has come, as app/web/views/work_view.py says it. */
  function stepsText(done, total, unit) {
    if (!total) {
      return "";
    }
    return unit ? `${SluiceText.count(done)} of ${SluiceText.count(total)} ${unit}` : `${Math.floor((100 * done) / total)} % of the range`;
  }

  function silentText(s) {
    return `The service has not answered for ${Math.floor(s)} s; trying again. If it stopped, the job starts again with it.`;
  }

  /** That a job was begun before, as app/web/views/work_view.py says it. */
  function againText(attempts) {
    return attempts > 1 ? `Started again: what ran it stopped. This is attempt ${attempts}.` : "";
  }

  /** One job and the part of the page that shows it; `told(job)`, `ended(job)` and `ticked(elapsed)` are its. */
  class Follower {
    constructor(part, identifier, {reported, ended, ticked}) {
      this.part = part;
      this.address = `/jobs/${identifier}/events`;
      this.calls = {reported, ended, ticked};
      this.startedAt = null;
      this.silentAt = null;
    }

    follow() {
      this.listen();
      this.ticking = setInterval(() => this.tick(), TICK_MS);
    }

    listen() {
      this.source = new EventSource(this.address);
      this.source.addEventListener("progress", (event) => this.reported(JSON.parse(event.data)));
      ENDS.forEach((name) => this.source.addEventListener(name, (event) => this.ended(JSON.parse(event.data))));
      this.source.addEventListener("error", () => this.failed());
    }

    /**
     * The browser tries again by itself, and says what it saw last; unless it was refused. Whether the
     * job goes on is not known then, so its clock stands still.
     */
    failed() {
      if (this.wait_disconnected()) {
        return;
      }
      this.silentAt ??= performance.now();
      if (this.source.readyState === EventSource.CLOSED) {
        setTimeout(() => this.wait_disconnected() || this.listen(), AGAIN_MS);
      }
    }

    wait_disconnected() {
      if (this.part.isConnected) {
        return false;
      }
      this.stop();
      return true;
    }

    stop() {
      this.source?.close();
      clearInterval(this.ticking);
    }

    reported(job) {
      if (this.wait_disconnected()) {
        return;
      }
      this.silentAt = null;
      this.tell("trouble", "");
      this.tell("again", againText(job.attempts));
      this.startedAt = job.state === "running" ? performance.now() - 1000 * job.progress.elapsed_s : null;
      this.put("word", job.cancel_requested ? "stopping…" : {queued: "waiting"}[job.state] ?? job.state);
      this.calls.reported?.(job);
    }

    ended(job) {
      this.source.close();
      if (!this.wait_disconnected()) {
        this.stop();
        this.calls.ended(job);
      }
    }

    tick() {
      if (this.wait_disconnected()) {
        return;
      }
      if (this.silentAt !== null) {
        this.tell("trouble", silentText((performance.now() - this.silentAt) / 1000));
        return;
      }
      if (this.startedAt === null) {
        return;
      }
      const elapsed = (performance.now() - this.startedAt) / 1000;
      this.put("elapsed", secondsText(elapsed));
      this.calls.ticked?.(elapsed);
    }

    put(name, text) {
      const place = this.part.querySelector(`[data-told=${name}]`);
      if (place && place.textContent !== text) {
        place.textContent = text;
      }
    }

    /** Something that is not always to be said. */
    tell(name, text) {
      this.put(name, text);
      this.part.querySelector(`[data-told=${name}]`).hidden = !text;
    }
  }

  return {Follower, secondsText, stepsText};
})();
