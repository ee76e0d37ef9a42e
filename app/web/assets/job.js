// Follows a job by the service's events: figures, the curve of what was known when, and its end.
"use strict";

(() => {
  const AGAIN_MS = 3000; // where the browser itself has given up
  const TICK_MS = 100;
  const DRAWN_MS = 1000; // the curves go on to this moment
  const ENDS = ["done", "failed", "cancelled"];
  const STEPS = [["best_latency_us", "best so far"], ["lower_bound_us", "proven bound"]];

  /** Put the page of this address in the place of this one, as a link would. */
  function show(address) {
    htmx.ajax("GET", address, {target: "#main", select: "#main", swap: "outerHTML"});
  }

  function secondsText(s) {
    return s < 60 ? `${s.toFixed(1)} s` : `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  }

  function gapText(gap) {
    if (gap === null || gap === undefined) {
      return "–";
    }
    return gap <= 0 ? "0 %" : `${Number((100 * gap).toPrecision(3))} %`;
  }

  /** The points of one curve: a step at each improvement, and on to this moment. */
  function stepsOf(progress, name) {
    const points = progress.history.map((point) => [point.elapsed_s, point[name]]);
    if (points.length) {
      const last = points[points.length - 1];
      points.push([Math.max(last[0], progress.elapsed_s), last[1]]);
    }
    return points;
  }

  function option(progress, colour, isNarrow) {
    const us = progress.history.flatMap((point) => STEPS.map(([name]) => point[name]));
    const isWide = us.length > 0 && Math.min(...us) > 0 && Math.max(...us) > 20 * Math.min(...us);
    return {
      ...SluiceCharts.base(colour, isNarrow),
      xAxis: SluiceCharts.axis(colour, {type: "value", name: "time, s", nameGap: 28, min: 0, splitLine: {show: false}}),
      yAxis: SluiceCharts.axis(colour, {
        type: isWide ? "log" : "value", scale: true, name: "latency", nameLocation: "end",
        nameTextStyle: {color: colour.quiet, align: "left"},
        axisLabel: {color: colour.quiet, formatter: SluiceCharts.timeText},
      }),
      tooltip: {
        ...SluiceCharts.base(colour).tooltip,
        formatter: (found) => [`after ${secondsText(found[0].value[0])}`,
          ...found.map((one) => `${one.seriesName}: ${SluiceCharts.timeText(one.value[1])}`)].join("\n"),
      },
      series: STEPS.map(([name, words], at) => ({
        name: words, type: "line", step: "end", data: stepsOf(progress, name), symbolSize: 6,
        showSymbol: progress.history.length < 40, color: colour.series[at],
        lineStyle: {width: 2, type: at ? "dashed" : "solid"},
      })),
    };
  }

  function cell(text) {
    const made = document.createElement("td");
    made.className = "number";
    made.textContent = text;
    return made;
  }

  function fillRows(history) {
    const rows = document.getElementById("job-rows");
    if (!rows || !history.length) {
      return;
    }
    rows.replaceChildren(...history.slice(-40).map((point) => {
      const row = document.createElement("tr");
      const best = point.best_latency_us;
      const bound = point.lower_bound_us;
      const gap = bound > 0 ? best / bound - 1 : null;
      row.append(cell(`${point.elapsed_s.toFixed(1)} s`), cell(SluiceCharts.timeText(best)),
        cell(SluiceCharts.timeText(bound)), cell(gapText(gap)));
      return row;
    }));
  }

  class Follower {
    constructor(part) {
      this.part = part;
      this.address = `/jobs/${part.dataset.job}/events`;
      this.progress = Sluice.data("job-data")?.progress;
      this.chart = null;
      this.toldBest = this.progress?.best_latency_us ?? null;
      this.startedAt = null;
      this.drawnAt = 0;
      this.drawChart();
      if (part.dataset.open === "yes") {
        this.listen();
        this.ticking = setInterval(() => this.tick(), TICK_MS);
      }
    }

    listen() {
      this.source = new EventSource(this.address);
      this.source.addEventListener("progress", (event) => this.told(JSON.parse(event.data)));
      ENDS.forEach((name) => this.source.addEventListener(name, (event) => this.ended(JSON.parse(event.data))));
      this.source.addEventListener("open", () => this.trouble(""));
      this.source.addEventListener("error", () => this.failed());
    }

    /** The browser tries again by itself, and says what it saw last; unless it was refused. */
    failed() {
      if (this.gone()) {
        return;
      }
      this.trouble("The connection broke; trying again. The job goes on meanwhile.");
      if (this.source.readyState === EventSource.CLOSED) {
        setTimeout(() => this.gone() || this.listen(), AGAIN_MS);
      }
    }

    gone() {
      if (this.part.isConnected) {
        return false;
      }
      this.source?.close();
      clearInterval(this.ticking);
      return true;
    }

    told(job) {
      if (this.gone()) {
        return;
      }
      this.progress = job.progress;
      this.startedAt = job.state === "running" ? performance.now() - 1000 * job.progress.elapsed_s : null;
      if (job.cancel_requested) {
        this.put("word", "stopping…");
      } else {
        this.put("word", job.state === "queued" ? "waiting" : job.state);
      }
      this.putFigures(job);
      fillRows(job.progress.history);
      this.drawChart();
    }

    putFigures(job) {
      const {best_latency_us: best, lower_bound_us: bound, relative_gap: gap} = job.progress;
      if (best === null) {
        return;
      }
      this.put("best", SluiceCharts.timeText(best));
      this.put("bound", SluiceCharts.timeText(bound));
      this.put("gap", gapText(gap));
      this.put("fragments", job.best ? job.best.fragments.toLocaleString("en").replaceAll(",", "\u202f") : "–");
      if (this.toldBest === null) {
        Sluice.say(`A first answer: ${SluiceCharts.timeText(best)}`);
      }
      this.toldBest = best;
    }

    ended(job) {
      this.source.close();
      if (this.gone()) {
        return;
      }
      clearInterval(this.ticking);
      if (job.state === "done" && job.answer_id) {
        Sluice.say("Done: the answer follows");
        location.replace(`/ui/answers/${job.answer_id}`);
        return;
      }
      show(location.pathname);
      const kept = job.answer_id ? "The best answer so far is kept." : "There is no answer.";
      Sluice.say(job.state === "cancelled" ? `Stopped. ${kept}` : "The job has ended.");
    }

    tick() {
      if (this.gone() || this.startedAt === null) {
        return;
      }
      const elapsed = (performance.now() - this.startedAt) / 1000;
      this.put("elapsed", secondsText(elapsed));
      if (performance.now() - this.drawnAt > DRAWN_MS && this.progress) {
        this.progress.elapsed_s = elapsed;
        this.drawChart();
      }
      const bar = this.part.querySelector("progress");
      if (bar) {
        bar.value = Math.min(bar.max, elapsed);
      }
    }

    async drawChart() {
      const place = document.querySelector("[data-job-chart]");
      if (!place || !this.progress?.history.length) {
        return;
      }
      place.hidden = false;
      this.drawnAt = performance.now();
      this.chart ??= SluiceCharts.mount(place, (colour, isNarrow) => option(this.progress, colour, isNarrow));
      (await this.chart)?.draw();
    }

    put(name, text) {
      const place = this.part.querySelector(`[data-told=${name}]`);
      if (place.textContent !== text) {
        place.textContent = text;
      }
    }

    trouble(text) {
      this.put("trouble", text);
      this.part.querySelector("[data-told=trouble]").hidden = !text;
    }
  }

  Sluice.onPart("[data-job]", (part) => new Follower(part));
})();
