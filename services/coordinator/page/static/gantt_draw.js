// Draws one step as lanes of cells. Knows geometry, nothing about where steps come from.
import {s} from './dom.js';
import {phaseFill} from './phases.js';

const LANE = 30;
const TRACK = 5;
const GAP = 12;
const AXIS = 20;
const LETTER_PIXELS = 12;
const TICK_PIXELS = 55;

function heightOf(lanes, links) {
  return AXIS + lanes * laneHeight(links);
}

function laneHeight(links) {
  return LANE + GAP + (links ? 2 * TRACK + 4 : 0);
}

/** Round ticks: 1, 2 or 5 times a power of ten, at most `most`. */
function ticks(begin, end, most) {
  const rough = (end - begin) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const size = [1, 2, 5, 10].map((factor) => factor * power).find((value) => value >= rough);
  const result = [];
  for (let tick = Math.ceil(begin / size) * size; tick <= end; tick += size) result.push(tick);
  return {ticks: result, digits: Math.max(0, -Math.floor(Math.log10(size) + 1e-9))};
}

/** What a label of so many characters needs. */
function pixelsOf(characters) {
  return 7 * characters + 4;
}

function labelOf(cell, width) {
  if (!cell.phase.letter) return '';
  if (!cell.phase.busy || cell.microBatch < 0) return width >= LETTER_PIXELS ? cell.phase.letter : '';
  const number = cell.cell >= 0 ? `${cell.cell}.${cell.microBatch}` : String(cell.microBatch);
  if (width >= pixelsOf(number.length + 1)) return `${cell.phase.letter}${number}`;
  return width >= pixelsOf(number.length) ? number : '';
}

function axis(view, width, left, height, x) {
  const group = s('g', {class: 'gantt-axis', 'aria-hidden': 'true'});
  const {ticks: at, digits} = ticks(view.begin, view.end, Math.max(3, Math.floor((width - left) / 90)));
  for (const tick of at) {
    group.append(s('line', {x1: x(tick), x2: x(tick), y1: AXIS - 4, y2: height}),
                 x(tick) + TICK_PIXELS < width ? s('text', {x: x(tick) + 3, y: AXIS - 8}, `${tick.toFixed(digits)} ms`) : '');
  }
  return group;
}

function drawCell(cell, lane, y, height, x, left, right, made, extra) {
  const from = Math.max(left, x(cell.begin));
  const to = Math.min(right, x(cell.end));
  if (to <= left || from >= right) return null;
  const width = Math.max(0.75, to - from);
  const group = s('g', {class: 'gantt-cell', 'data-phase': cell.name, 'data-micro-batch': cell.microBatch, 'data-cell': cell.cell,
                         'data-stage': lane.stage, ...extra});
  const inset = width > 4 ? 0.5 : 0;
  group.append(s('rect', {x: from + inset, y, width: width - 2 * inset, height, rx: width > 6 ? 2 : 0, ...made}));
  const text = height > 10 ? labelOf(cell, width) : '';
  if (text) group.append(s('text', {class: `on-phase on-${cell.name}`, x: from + width / 2, y: y + height / 2, dy: '0.35em'}, text));
  return group;
}

/**
 * The <svg> of `step` between view.begin and view.end (milliseconds). options: {width, left, links, describe,
 * label}. Cells carry their index in `cells`, by lane and time, for hover and focus.
 */
export function drawGantt(step, view, options) {
  const {width, left, links} = options;
  const height = heightOf(step.lanes.length, links);
  const x = (time) => left + (time - view.begin) / (view.end - view.begin) * (width - left);
  const svg = s('svg', {class: 'gantt', role: 'group', 'aria-label': options.label, width, height, viewBox: `0 0 ${width} ${height}`});
  svg.append(axis(view, width, left, height, x));
  const cells = [];
  step.lanes.forEach((lane, index) => {
    const top = AXIS + index * laneHeight(links);
    svg.append(s('text', {class: 'gantt-lane', x: 0, y: top + LANE / 2, dy: '0.35em'}, left > 40 ? `Stage ${lane.stage}` : String(lane.stage)),
               s('rect', {class: 'gantt-ground', x: left, y: top, width: Math.max(0, width - left), height: LANE}));
    const add = (list, y, cellHeight, made) => {
      for (const cell of list) {
        const extra = {'data-index': cells.length, role: 'img', 'aria-label': options.describe(lane, cell), tabindex: -1};
        const group = drawCell(cell, lane, y, cellHeight, x, left, width, made(cell), extra);
        if (!group) continue;
        cells.push({cell, lane, group, x: (Math.max(left, x(cell.begin)) + Math.min(width, x(cell.end))) / 2, y: y + cellHeight});
        svg.append(group);
      }
    };
    add(lane.cells, top, LANE, (cell) => phaseFill(cell.name));
    if (links) {
      add(lane.sends, top + LANE + 2, TRACK, (cell) => ({class: `track track-send-${cell.name}`}));
      add(lane.receives, top + LANE + TRACK + 4, TRACK, (cell) => ({class: `track track-receive-${cell.name}`}));
    }
  });
  return {svg, cells, x, laneTop: (index) => AXIS + index * laneHeight(links), laneHeight: LANE};
}

/** Arrows of one micro-batch from each send to the receive at the other end of its edge. */
export function drawArrows(drawn, step, microBatch) {
  const group = s('g', {class: 'gantt-arrows', 'aria-hidden': 'true'});
  const same = (a, b) => a.name === b.name && a.cell === b.cell && a.microBatch === b.microBatch;
  step.lanes.forEach((lane, index) => {
    for (const receive of lane.receives) {
      if (receive.microBatch !== microBatch) continue;
      const from = step.lanes.findIndex((other, place) => place !== index && other.sends.some((send) => same(send, receive)));
      if (from < 0) continue;
      const down = from < index;
      const y1 = drawn.laneTop(from) + (down ? drawn.laneHeight : 0);
      const y2 = drawn.laneTop(index) + (down ? 0 : drawn.laneHeight);
      const [x1, x2] = [drawn.x(receive.begin), drawn.x(receive.end)];
      group.append(s('line', {x1, y1, x2, y2}), s('circle', {cx: x2, cy: y2, r: 3}));
    }
  });
  return group;
}
