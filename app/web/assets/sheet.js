// What is pasted from a spreadsheet or a file of comma-separated values: its cells, which column of
// the stage table each belongs to, and the units that its header names.
"use strict";

window.SluiceSheet = (() => {
  const Units = window.SluiceUnits;
  // "g" and "G" are the papers' letters for the two costs, so these two are told apart by their case.
  const COLUMNS = [
    ["up_to", /^(up.?to|until|to|range.?end|max(imum)?.?size)\b/i],
    ["name", /^(stage|name|step|hop|resource)/i],
    ["cost", /^(G\b|cost|per.?byte|ns.?per.?byte|bandwidth|bw\b|throughput|rate|slope)/],
    ["cost", /^(cost|per.?byte|ns.?per.?byte|bandwidth|bw\b|throughput|rate|slope)/i],
    ["overhead", /^(g\b|o\b)/],
    ["overhead", /^(overhead|latency|fixed|start|set.?up|per.?fragment|alpha|intercept)/i],
  ];
  const PATTERN_OF_UNIT = /[([]\s*([^)\]]+?)\s*[)\]]|,\s*([^,]+)$|_(us|ns|ms|ns_per_byte)$/;

  /** Rows of cells, split at tabs, else at semicolons, else at commas outside quotes. */
  function cells(text) {
    const lines = text.replace(/\r\n?/g, "\n").split("\n").filter((line) => line.trim() !== "");
    const separator = ["\t", ";", ","].find((one) => lines.some((line) => line.includes(one)));
    return lines.map((line) => split(line, separator).map((cell) => plain(cell, separator)));
  }

  function split(line, separator) {
    if (!separator) return [line];
    const found = [];
    let cell = "";
    let quoted = false;
    for (const sign of line) {
      if (sign === '"') quoted = !quoted;
      else if (sign === separator && !quoted) {
        found.push(cell);
        cell = "";
      } else cell += sign;
    }
    return [...found, cell];
  }

  /** A cell without its margins; a decimal comma where a comma cannot be anything else. */
  function plain(cell, separator) {
    const text = cell.trim();
    return separator !== "," && /^[+-]?\d+,\d+$/.test(text) ? text.replace(",", ".") : text;
  }

  function unitOf(header) {
    const found = header.match(PATTERN_OF_UNIT);
    const text = found ? found[1] || found[2] || found[3].replace("_per_", "/") : header;
    return Units.named(text);
  }

  function columnOf(header) {
    const found = COLUMNS.find(([, pattern]) => pattern.test(header));
    return found ? found[0] : unitOf(header)?.column;
  }

  function isHeader(row) {
    return row.every((cell) => Number.isNaN(Units.read(cell))) && row.some(columnOf);
  }

  /** Columns where no header says them: a name first where it is not a number. */
  function guessed(row, start) {
    const order = ["name", "overhead", "cost", "up_to"];
    const named = row.length > 2 || Number.isNaN(Units.read(row[0]));
    const first = start === "name" && !named ? 1 : order.indexOf(start);
    return row.map((_, place) => order[first + place]);
  }

  /**
   * What a text holds for the stage table: {rows, units, hasHeader}. Each row is an object by column,
   * `units` what the header said by column. `start` is the column that it was pasted into.
   */
  function read(text, start) {
    const all = cells(text);
    if (all.length === 0) return {rows: [], units: {}, hasHeader: false};
    const hasHeader = isHeader(all[0]);
    const columns = hasHeader ? all[0].map(columnOf) : guessed(all[0], start);
    const units = {};
    if (hasHeader) {
      all[0].forEach((header, place) => {
        const unit = unitOf(header);
        if (unit && unit.column === columns[place]) units[unit.column] = unit.unit;
      });
    }
    const rows = all.slice(hasHeader ? 1 : 0).map((row) => {
      const made = {};
      row.forEach((cell, place) => {
        if (columns[place]) made[columns[place]] = cell;
      });
      return made;
    });
    for (const column of ["overhead", "cost"]) bare(rows, units, column);
    return {rows, units, hasHeader};
  }

  /** Take the units out of the cells of a column where every one of them names its own. */
  function bare(rows, units, column) {
    const found = rows.map((row) => Units.measured(row[column] || ""));
    if (!found.every((one) => one?.column === column)) return;
    units[column] ??= found[0].unit;
    rows.forEach((row, place) => {
      const {number, unit} = found[place];
      const made = unit === units[column] ? number : Units.convert(column, number, unit, units[column]);
      row[column] = made ?? row[column];
    });
  }

  /** Whether a text is more than one cell. */
  function isSheet(text) {
    return /[\t\n]/.test(text.trim());
  }

  return {read, isSheet};
})();
