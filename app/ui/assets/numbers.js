// Numbers as a reader meets them, by the rules of app/text: tests hold both to the same examples.
"use strict";

window.SluiceText = (() => {
  const DIGITS = 4;
  const MAX_DIGITS = 12;
  const UNITS = [["s", 6], ["ms", 3], ["µs", 0], ["ns", -3]]; // a name, and the power of ten in µs
  const PLAIN_US = [1e-9, 1e21]; // beyond, times have an exponent
  const TELLING_US = [1e-9, 1e15]; // beyond, DIGITS do
  const READ_OFF = 0.05; // relative, of a gap
  const MIN_SHARE = 1e-6; // of a whole; less is written in words
  const HUGE_SHARE = 1e300; // more stands for what nothing can be divided by

  /** The magnitude of a number: 3 for 1234. */
  function magnitudeOf(value) {
    return Number(value.toExponential().split("e")[1]);
  }

  /** The unit and the decimals with which a time has so many significant digits. */
  function unitOf(us, digits) {
    const size = Math.abs(us);
    if (!size) {
      return {name: "µs", power: 0, decimals: 0};
    }
    if (size < PLAIN_US[0] || size >= PLAIN_US[1]) {
      return size > 1 ? {name: "s", power: 6, decimals: null} : {name: "ns", power: -3, decimals: null};
    }
    const magnitude = magnitudeOf(Number(size.toPrecision(digits)));
    const [name, power] = UNITS.find((one) => magnitude >= one[1]) || UNITS.at(-1);
    return {name, power, decimals: Math.max(0, digits - 1 - (magnitude - power))};
  }

  /** The point of a number moved in its text: a quotient would have other last digits. */
  function moved(value, power) {
    const [mantissa, exponent] = value.toExponential().split("e");
    return Number(`${mantissa}e${Number(exponent) + power}`);
  }

  function named(us, unit) {
    const value = moved(us, -unit.power);
    return `${unit.decimals === null ? value.toExponential(DIGITS - 1) : value.toFixed(unit.decimals)} ${unit.name}`;
  }

  /** The number of so many significant digits above or below; the same where it has no more. */
  function beyond(value, digits, direction) {
    const near = Number(value.toExponential(digits - 1));
    if (direction > 0 ? near >= value : near <= value) {
      return near;
    }
    const last = magnitudeOf(value) - digits + 1; // 999.99 rounds to 1000, which is counted in its own tenths
    return moved(Math.round(moved(near, -last)) + direction, last);
  }

  const unknown = (value) => value === null || value === undefined || !Number.isFinite(Number(value));

  /** A time in the unit that suits it: 184.4 µs, 1.000 ms. */
  function time(us, digits = DIGITS) {
    if (unknown(us)) {
      return "–";
    }
    const unit = unitOf(us, digits);
    return named(unit.decimals ? Number(us.toPrecision(digits)) : us, unit);
  }

  /** A time of an axis, or one that somebody gave, without zeros at its end. */
  function givenTime(us) {
    const [value, name] = time(us, 9).split(" ");
    return name ? `${value.includes(".") ? value.replace(/\.?0+$/, "") : value} ${name}` : value;
  }

  /** Digits with which a latency and its bound, rounded down, are as far apart as their gap says. */
  function agreeingDigits(latencyUs, boundUs) {
    const gap = (latencyUs - boundUs) / boundUs;
    if (!(gap > 0 && gap < 1 && latencyUs > TELLING_US[0] && latencyUs < TELLING_US[1])) {
      return DIGITS;
    }
    const magnitude = Math.floor(Math.log10(latencyUs)) + 1;
    for (let digits = DIGITS; digits < MAX_DIGITS; digits += 1) {
      const scale = Number(`1e${digits - magnitude}`); // a power would not be exact
      const shown = Math.floor(latencyUs * scale + 0.5) / Math.floor(boundUs * scale) - 1;
      if (Math.abs(shown - gap) <= READ_OFF * gap || Math.max(shown, gap) < MIN_SHARE) {
        return digits;
      }
    }
    return MAX_DIGITS;
  }

  /** A bound in a unit, rounded down: never more than is proven. */
  function boundIn(us, unit) {
    if (unit.decimals === null || !(us > 0)) {
      return named(us, unit);
    }
    const digits = magnitudeOf(us) - unit.power + unit.decimals + 1; // down to the unit's last decimal
    return named(digits < 1 ? 0 : beyond(us, digits, -1), unit);
  }

  /** A latency and its proven bound in one unit, and the gap between them. Either may be null. */
  function proven(latencyUs, boundUs) {
    if (unknown(latencyUs) || unknown(boundUs)) {
      const bound = unknown(boundUs) ? "–" : boundIn(boundUs, unitOf(boundUs, DIGITS));
      return {latency: time(latencyUs), bound, gap: "–"};
    }
    const digits = agreeingDigits(latencyUs, boundUs);
    const unit = unitOf(latencyUs, digits);
    const latency = time(latencyUs, digits);
    const bound = boundUs === latencyUs ? latency : boundIn(boundUs, unit);
    return {latency, bound, gap: gap(latencyUs > boundUs ? (latencyUs - boundUs) / boundUs : 0)};
  }

  /** A share of 0 or more in per cent, three digits; `direction` 1 is up, 0 to nearest. */
  function perCent(share, direction) {
    if (share > HUGE_SHARE) {
      return "∞";
    }
    if (share >= 1e6) {
      const near = direction ? beyond(share, 3, 1) : Number(share.toPrecision(3));
      return moved(near, 2).toExponential(2);
    }
    if (share >= 1) {
      return String(direction ? Math.ceil(moved(share, 2)) : Math.round(moved(share, 2)));
    }
    return plain(moved(direction ? beyond(share, 3, 1) : Number(share.toPrecision(3)), 2));
  }

  /** A number without an exponent and without zeros at its end. */
  function plain(value) {
    return value < 1e-3 ? value.toFixed(10).replace(/\.?0+$/, "") : String(value);
  }

  /** A share in per cent: 2.46 %. */
  function percent(share) {
    if (share !== 0 && Math.abs(share) < MIN_SHARE) {
      return share > 0 ? "< 0.0001 %" : "> −0.0001 %";
    }
    return `${share < 0 ? "−" : ""}${perCent(Math.abs(share), 0)} %`;
  }

  /** A change in per cent, with its sign. */
  function signedPercent(share) {
    const text = percent(share);
    if (share <= 0) {
      return text;
    }
    return text.startsWith("<") ? text.replace("< ", "< +") : `+${text}`;
  }

  /** A relative gap in per cent, rounded up: never less than is left open. */
  function gap(value) {
    if (value === null || value === undefined) {
      return "–";
    }
    if (value <= 0) {
      return "0 %";
    }
    return value < MIN_SHARE ? "< 0.0001 %" : `${perCent(value, 1)} %`;
  }

  /** By how much a latency is above another. */
  function excess(latencyUs, referenceUs) {
    if (referenceUs <= 0) {
      return "";
    }
    const more = latencyUs / referenceUs - 1;
    return Math.abs(more) < 1e-12 ? "equal" : signedPercent(more);
  }

  /** A number with so many significant digits, plain where that is readable. */
  function figure(value, digits = DIGITS) {
    if (!value) {
      return "0";
    }
    const size = Math.abs(value);
    if (size < 1e-4 || size >= 1e7) {
      const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
      return `${mantissa}e${exponent[0]}${exponent.slice(1).padStart(2, "0")}`;
    }
    return value.toFixed(Math.max(0, digits - 1 - magnitudeOf(size)));
  }

  /** A whole number with thin spaces between thousands. */
  function count(value) {
    return value.toLocaleString("en").replaceAll(",", "\u202f");
  }

  /** Bytes in the largest binary unit that divides them: 64 KiB. */
  function bytes(value) {
    for (const [power, unit] of [[40, "TiB"], [30, "GiB"], [20, "MiB"], [10, "KiB"]]) {
      if (value >= 2 ** power && value % 2 ** power === 0) {
        return `${value / 2 ** power} ${unit}`;
      }
    }
    return `${Number.isInteger(value) ? value : figure(value)} B`;
  }

  return {time, givenTime, proven, percent, signedPercent, gap, excess, figure, count, bytes};
})();
