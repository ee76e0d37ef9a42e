// Follows a job by the service's events, and says what it has come to without saying too much.
"use strict";

window.SluiceJob = (() => {
  const AGAIN_MS = 3000; // where the browser itself has given up
  const TICK_MS = 100;
  const TIME_DIGITS = 5;
  const MOST_DIGITS = 12;
  const TOLD_US = [1e-9, 1e15]; // beyond, five digits do
  const READ_OFF = 0.05; // relative, of a gap
  const GAP_DIGITS = 3;
  const LEAST_GAP = 1e-6; // of a whole; less is told in words
  const ENDS = ["done", "failed", "cancelled"];

  function secondsText(s) {
    return s < 60 ? `${s.toFixed(1)} s` : `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  }

  /** The next number of so many digits, upwards or downwards; the same where it has no more. */
  function rounded(value, digits, direction) {
    const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
    const near = Number(`${mantissa}e${exponent}`);
    const isBeyond = direction > 0 ? near < value : near > value;
    if (!isBeyond) {
      return near;
    }
    const whole = Math.round(Number(mantissa) * 10 ** digits); // one digit more: 1.0000 goes down to 0.99999
    const step = direction < 0 && whole === 10 ** digits ? 1 : 10;
    return Number(`${whole + direction * step}e${Number(exponent) - digits}`);
  }

  /** Digits with which a latency, rounded up, and its bound, down, are as far apart as their gap says. */
  function digitsOf(bestUs, boundUs) {
    const gap = (bestUs - boundUs) / boundUs;
    if (!(gap > 0 && gap < 1 && bestUs > TOLD_US[0] && bestUs < TOLD_US[1])) {
      return TIME_DIGITS;
    }
    const magnitude = Math.floor(Math.log10(bestUs)) + 1;
    for (let digits = TIME_DIGITS; digits < MOST_DIGITS; digits += 1) {
      const scale = 10 ** (digits - magnitude);
      const shown = Math.ceil(bestUs * scale) / Math.floor(boundUs * scale) - 1;
      if (Math.abs(shown - gap) <= READ_OFF * gap || Math.max(shown, gap) < LEAST_GAP) {
        return digits;
      }
    }
    return MOST_DIGITS;
  }

  /** A latency that was found: never less than it takes. */
  function latencyText(us, digits = TIME_DIGITS) {
    return SluiceCharts.timeText(us > 0 ? rounded(us, digits, 1) : us, digits);
  }

  /** A lower bound on that latency: never more than is proven, and the same text where it is reached. */
  function boundText(us, latencyUs, digits = TIME_DIGITS) {
    if (us === latencyUs || !(us > 0)) {
      return latencyText(us, digits);
    }
    return SluiceCharts.timeText(rounded(us, digits, -1), digits);
  }

  /** What is known of a solve, as texts that agree: its best latency, the bound on it, the gap between. */
  function knownTexts(bestUs, boundUs) {
    const digits = digitsOf(bestUs, boundUs);
    const gap = boundUs > 0 ? Math.max(0, bestUs - boundUs) / boundUs : null;
    return {best: latencyText(bestUs, digits), bound: boundText(boundUs, bestUs, digits), gap: gapText(gap)};
  }

  /** A relative gap in per cent: never less than is left open, as app/console/words.py tells it. */
  function gapText(gap) {
    if (gap === null || gap === undefined) {
      return "–";
    }
    if (gap <= 0) {
      return "0 %";
    }
    if (gap < LEAST_GAP) {
      return "< 0.0001 %";
    }
    if (gap >= 1e6) {
      return Number.isFinite(gap) ? `${(100 * rounded(gap, GAP_DIGITS, 1)).toExponential(GAP_DIGITS - 1)} %` : "∞ %";
    }
    // The point is moved in the text: a product would have another last digit.
    return gap < 1 ? `${Number(`${rounded(gap, GAP_DIGITS, 1)}e2`)} %` : `${Math.ceil(Number(`${gap}e2`))} %`;
  }

  /** How far the counted part has come, as app/web/views/work_view.py says it. */
  function stepsText(done, total, unit) {
    if (!total) {
      return "";
    }
    const grouped = (number) => number.toLocaleString("en").replaceAll(",", "\u202f");
    return unit ? `${grouped(done)} of ${grouped(total)} ${unit}` : `${Math.floor((100 * done) / total)} % of the range`;
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
    constructor(part, identifier, {told, ended, ticked}) {
      this.part = part;
      this.address = `/jobs/${identifier}/events`;
      this.calls = {told, ended, ticked};
      this.startedAt = null;
      this.silentAt = null;
    }

    follow() {
      this.listen();
      this.ticking = setInterval(() => this.tick(), TICK_MS);
    }

    listen() {
      this.source = new EventSource(this.address);
      this.source.addEventListener("progress", (event) => this.told(JSON.parse(event.data)));
      ENDS.forEach((name) => this.source.addEventListener(name, (event) => this.ended(JSON.parse(event.data))));
      this.source.addEventListener("error", () => this.failed());
    }

    /**
     * The browser tries again by itself, and says what it saw last; unless it was refused. Whether the
     * job goes on is not known then, so its clock stands still.
     */
    failed() {
      if (this.gone()) {
        return;
      }
      this.silentAt ??= performance.now();
      if (this.source.readyState === EventSource.CLOSED) {
        setTimeout(() => this.gone() || this.listen(), AGAIN_MS);
      }
    }

    gone() {
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

    told(job) {
      if (this.gone()) {
        return;
      }
      this.silentAt = null;
      this.tell("trouble", "");
      this.tell("again", againText(job.attempts));
      this.startedAt = job.state === "running" ? performance.now() - 1000 * job.progress.elapsed_s : null;
      this.put("word", job.cancel_requested ? "stopping…" : {queued: "waiting"}[job.state] ?? job.state);
      this.calls.told?.(job);
    }

    ended(job) {
      this.source.close();
      if (!this.gone()) {
        this.stop();
        this.calls.ended(job);
      }
    }

    tick() {
      if (this.gone()) {
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

  return {Follower, secondsText, latencyText, boundText, gapText, digitsOf, knownTexts, stepsText};
})();
