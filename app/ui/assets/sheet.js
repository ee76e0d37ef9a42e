// What is pasted from a spreadsheet or a file of comma-separated values: its cells, which column of
// the stage table each belongs to, and the units that its header or its cells name. What is not
// understood is said, and what may mean two things is left so that the service asks back.
"use strict";

window.SluiceSheet = (() => {
  const Units = window.SluiceUnits;
  const COSTS = ["overhead", "cost"];
  // "g" and "G" are the papers' letters for the two costs, so these two are distinguished by their case.
  const BANDWIDTH = /^(bandwidth|bw(?![a-z])|throughput|(data.?|transfer.?)?rate|speed)/i;
  const COLUMNS = [
    ["up_to", /^(up.?to|until|to|range.?end|max(imum)?.?size)(?![a-z])/i],
    ["name", /^(stage|name|step|hop|resource)/i],
    ["cost", /^G(?![A-Za-z/])/],
    ["cost", BANDWIDTH],
    ["cost", /^(cost|(time.?)?per.?byte|slope)/i],
    ["overhead", /^[go](?![A-Za-z/])/],
    ["overhead", /^(overhead|ovh?d?(?![a-z])|latency|fixed|start|set.?up|(time.?)?per.?fragment|alpha|intercept)/i],
  ];
  const PLAIN_WORDS = new RegExp("^(an?|the|of|per|in|and|each|to|up|times?|costs?|overheads?|latency|fixed|start|startup|"
    + "setup|fragments?|messages?|packets?|bytes?|stages?|copy|mean|median|average|value|range)$", "i");
  const SUMS = /^(grand )?(total|sum|mean|average|avg|median)\b/i;
  const COMMA_IN_NUMBER = /(^|,)\s*[1-9]\d{0,2},\d{3}\s*(,|$)/;

  /** {separator, rows of cells}: split at tabs, else at semicolons, else at commas outside quotes. */
  function cells(text) {
    const lines = text.replace(/\r\n?/g, "\n").split("\n").filter((line) => line.trim() !== "");
    let separator = ["\t", ";", ","].find((one) => lines.some((line) => line.includes(one)));
    // One column with a comma in every number, rather than two columns.
    const numbers = lines.length > 1 && !lines[0].includes(",") ? lines.slice(1) : lines;
    if (separator === "," && numbers.every((line) => /^\s*\d+(,\d+)?\s*$/.test(line))) separator = "";
    return {separator, lines, all: lines.map((line) => split(line, separator).map((cell) => cell.trim()))};
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

  function columnOf(header) {
    return COLUMNS.find(([, pattern]) => pattern.test(header))?.[0] ?? unitAlone(header)?.column;
  }

  /** The unit that a header is, or that stands at its end. */
  function unitAlone(header) {
    const last = header.match(/[([]([^)\]]*)[)\]]|[,_\s]([^,_\s]+)$/);
    return Units.named(header) ?? (last && Units.named(last[1] ?? last[2]));
  }

  /** What a header says of its column's unit: {unit}, {asked: a text that is no unit}, or {}. */
  function unitIn(header, column) {
    const pattern = COLUMNS.find(([, one]) => one.test(header))?.[1];
    if (!pattern) return {unit: unitAlone(header).unit};
    const rest = header.replace(pattern, "");
    const text = (rest.match(/[([]([^)\]]*)[)\]]/)?.[1] ?? rest).replace(/^[\s,:;_./-]+|[\s_:]+$/g, "");
    const found = Units.named(text);
    if (found?.column === column) return {unit: found.unit};
    if (column === "cost" && found?.unit === "ns" && /(per|an?|\/)[\s_]*byte/i.test(header)) return {unit: "ns_per_byte"};
    const isPlain = text.split(/[\s_]+/).every((word) => word === "" || PLAIN_WORDS.test(word));
    if (!isPlain) return {asked: text};
    return BANDWIDTH.test(header) ? {asked: ""} : {};
  }

  function isHeader(row) {
    return row.every((cell) => Units.split(cell).number === "") && row.some(columnOf);
  }

  /** Columns where no header says them: a name first where it is not a number. */
  function guessed(row, start) {
    const order = ["name", ...COSTS, "up_to"];
    const named = row.length > 2 || Units.split(row[0]).number === "";
    const first = start === "name" && !named ? 1 : order.indexOf(start);
    return row.map((_, place) => order[first + place]);
  }

  /** The columns of a header, each once, and a note of those that are left out. */
  function columnsOf(header, made) {
    const found = header.map(columnOf);
    return found.map((column, place) => {
      if (column && found.indexOf(column) === place) return column;
      if (header[place]) {
        const why = column ? "there is one before it" : "it was not understood";
        made.notes.push(`Column “${Units.shown(header[place])}” was not pasted: ${why}.`);
      }
      return undefined;
    });
  }

  /**
   * What a text holds for the stage table. `start` is the column that it was pasted into, `chosen` the
   * units that stand there. Gives {hasHeader, rows, units, asked, changed, notes}: each row is an object
   * by column; `units` and `asked` are by column what the text says, or what it says that is no unit;
   * `changed` are numbers as they were and are; `notes` are sentences.
   */
  function read(text, start, chosen) {
    const made = {hasHeader: false, rows: [], units: {}, asked: {}, changed: [], notes: []};
    const {separator, lines, all} = cells(text);
    if (all.length === 0) return made;
    made.hasHeader = isHeader(all[0]);
    const columns = made.hasHeader ? columnsOf(all[0], made) : guessed(all[0], start);
    const heading = {};
    columns.forEach((column, place) => {
      if (made.hasHeader && COSTS.includes(column)) heading[column] = unitIn(all[0][place], column);
    });
    const shortest = Math.min(...all.map((row) => row.length));
    made.rows = all.slice(made.hasHeader ? 1 : 0).map((row, place) => {
      const line = lines[place + (made.hasHeader ? 1 : 0)];
      const one = rowOf(row, columns);
      const more = row.slice(columns.length).some((cell) => cell) || (separator === "," && row.length > shortest);
      if (more && (made.hasHeader || COMMA_IN_NUMBER.test(line))) doubt(one, place, made);
      return one;
    });
    if (!made.hasHeader && all.some((row) => row.some((cell, place) => cell && !columns[place]))) {
      made.notes.push("Cells right of the table's columns were not pasted.");
    }
    leaveSumOut(made);
    for (const column of COSTS) readColumn(column, heading[column] ?? {}, chosen[column], made);
    return made;
  }

  function rowOf(row, columns) {
    const one = {};
    columns.forEach((column, place) => {
      if (column) one[column] = row[place] ?? "";
    });
    return one;
  }

  /** A row whose cells may be shifted: its numbers are asked back. */
  function doubt(row, place, made) {
    made.notes.push(`Row ${place + 1} has more cells than others: is there a comma within a number?`);
    for (const column of COSTS) if (row[column]) row[column] += " ?";
  }

  function leaveSumOut(made) {
    const last = made.rows.at(-1);
    if (made.rows.length > 2 && SUMS.test(last.name ?? "")) {
      made.rows.pop();
      made.notes.push(`Row “${Units.shown(last.name)}” was not pasted: it is no stage.`);
    }
  }

  /** Plain numbers in one unit, as far as that is certain; the rest stays as it was written. */
  function readColumn(column, heading, chosen, made) {
    const rows = made.rows.filter((row) => row[column]);
    if (rows.length === 0) return;
    const parts = rows.map((row) => partsOf(row[column], column));
    const sign = Units.decimalSign(parts.filter((part) => part.number).map((part) => part.number));
    const own = parts.filter((part) => part.unit);
    const bare = parts.filter((part) => part.number && !part.name);
    const unit = heading.unit ?? (own.length > 0 ? own[0].unit : null);
    if (unit) made.units[column] = unit;
    else if (heading.asked !== undefined && (heading.asked || !Units.isBandwidth(chosen))) made.asked[column] = heading.asked;
    const isMixed = !heading.unit && own.length > 0 && bare.length > 0;
    rows.forEach((row, place) => {
      row[column] = writeCell(row[column], parts[place], {column, sign, unit, isMixed, made});
    });
  }

  /** A cell's {number, name of its unit as written, unit if known in this column}. */
  function partsOf(text, column) {
    const {number, unit: name} = Units.split(text);
    const found = name ? Units.named(name) : null;
    return {number, name, unit: found?.column === column ? found.unit : null};
  }

  function writeCell(text, part, {column, sign, unit, isMixed, made}) {
    if (!part.number || (part.name && !part.unit)) return text;
    const number = Units.plain(part.number, sign);
    if (number === null) return part.number.includes(",") ? text : `${text} ?`;
    if (Number.isNaN(Units.read(number))) return text;
    if (number !== part.number) made.changed.push([part.number, number]);
    if (part.unit && part.unit !== unit) return Units.convert(column, number, part.unit, unit) ?? text;
    return isMixed && !part.unit ? `${number} ?` : number;
  }

  /** Whether a text is more than one cell. */
  function isSheet(text) {
    return /[\t\n]/.test(text.trim());
  }

  return {read, isSheet};
})();
