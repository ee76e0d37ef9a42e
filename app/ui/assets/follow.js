// Follows a job by the service's events, and shows how far it has come.
"use strict";

window.SluiceJob = (() => {
  const AGAIN_MS = 3000; // where the browser itself has given up
  const TICK_MS = 100;
  const ENDS = ["done", "failed", "cancelled"];

  function formatSeconds(s) {
    return s < 60 ? `${s.toFixed(1)} s` : `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  }

  /** How far the counted part has come, as app/web/jobs/work.py says it. */
  function formatSteps(done, total, unit) {
    if (!total) {
      return "";
    }
    return unit ? `${SluiceText.count(done)} of ${SluiceText.count(total)} ${unit}` : `${Math.floor((100 * done) / total)} % of the range`;
  }

  function formatSilence(s) {
    return `The service has not answered for ${Math.floor(s)} s; trying again. If it stopped, the job starts again with it.`;
  }

  /** That a job was begun before, as app/web/jobs/work.py says it. */
  function formatAttempts(attempts) {
    return attempts > 1 ? `Started again: what ran it stopped. This is attempt ${attempts}.` : "";
  }

  /** One job and the part of the page that shows it; `reported(job)`, `ended(job)` and `ticked(elapsed)` are called. */
  class Follower {
    constructor(part, identifier, {reported, ended, ticked}) {
      this.part = part;
      this.address = `${Sluice.root}/jobs/${identifier}/events`;
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
      if (this.isRemoved()) {
        return;
      }
      this.silentAt ??= performance.now();
      if (this.source.readyState === EventSource.CLOSED) {
        setTimeout(() => this.isRemoved() || this.listen(), AGAIN_MS);
      }
    }

    isRemoved() {
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
      if (this.isRemoved()) {
        return;
      }
      this.silentAt = null;
      this.toggle("trouble", "");
      this.toggle("again", formatAttempts(job.attempts));
      this.startedAt = job.state === "running" ? performance.now() - 1000 * job.progress.elapsed_s : null;
      this.put("word", job.cancel_requested ? "stopping…" : {queued: "waiting"}[job.state] ?? job.state);
      this.calls.reported?.(job);
    }

    ended(job) {
      this.source.close();
      if (!this.isRemoved()) {
        this.stop();
        this.calls.ended(job);
      }
    }

    tick() {
      if (this.isRemoved()) {
        return;
      }
      if (this.silentAt !== null) {
        this.toggle("trouble", formatSilence((performance.now() - this.silentAt) / 1000));
        return;
      }
      if (this.startedAt === null) {
        return;
      }
      const elapsed = (performance.now() - this.startedAt) / 1000;
      this.put("elapsed", formatSeconds(elapsed));
      this.calls.ticked?.(elapsed);
    }

    put(name, text) {
      const place = this.part.querySelector(`[data-field=${name}]`);
      if (place && place.textContent !== text) {
        place.textContent = text;
      }
    }

    /** A field that is hidden while it is empty. */
    toggle(name, text) {
      this.put(name, text);
      this.part.querySelector(`[data-field=${name}]`).hidden = !text;
    }
  }

  return {Follower, formatSeconds, formatSteps};
})();
