// The schedule that ran, as it would run with equal cells and links that cost nothing.
import {phaseOf} from './phases.js';

const KINDS = ['forward', 'recompute', 'backward'];

/**
 * The lane's pieces of KINDS as [kind, cell]. zero_bubble runs a micro-batch's backward in two parts, input gradient
 * and weight gradient, of different lengths: the second one is a kind of its own.
 */
function pieces(lane) {
  const halves = new Set();
  return lane.cells.filter((cell) => KINDS.includes(cell.name)).map((cell) => {
    const key = `${cell.cell}:${cell.microBatch}`;
    const again = cell.name === 'backward' && halves.has(key);
    if (cell.name === 'backward') halves.add(key);
    return [again ? 'backward weight' : cell.name, cell];
  });
}

/** The network's cell; a stage with one has its place in the pipeline. */
function numberOf(cell, index) {
  return cell.cell >= 0 ? cell.cell : index;
}

function means(lanes) {
  const sums = {};
  for (const [kind, cell] of lanes.flatMap(pieces)) {
    const sum = sums[kind] || (sums[kind] = {total: 0, count: 0});
    sum.total += cell.end - cell.begin;
    sum.count += 1;
  }
  return Object.fromEntries(Object.entries(sums).map(([name, sum]) => [name, sum.total / sum.count]));
}

/** What must have ended before this piece may begin: the same micro-batch's one of the cell before or behind. */
function dependency(kind, number, microBatch, last) {
  if (kind === 'forward') return number > 0 ? `forward:${number - 1}:${microBatch}` : null;
  if (kind === 'backward') return number < last ? `backward:${number + 1}:${microBatch}` : null;
  return null;
}

/**
 * A step like gantt_model's: each lane keeps the order that it ran in, every piece takes the mean time of its
 * kind over all stages, and starts as soon as the stage is free and its input is there.
 */
export function idealStep(step) {
  const mean = means(step.lanes);
  const lanes = step.lanes.map((lane) => ({stage: lane.stage, name: lane.name, cells: [], sends: [], receives: [],
    todo: pieces(lane), next: 0, free: 0}));
  const last = Math.max(0, ...lanes.flatMap((lane, index) => lane.todo.map(([, cell]) => numberOf(cell, index))));
  const ends = new Map();
  for (let moved = true; moved;) {
    moved = false;
    lanes.forEach((lane, index) => {
      while (lane.next < lane.todo.length) {
        const [kind, cell] = lane.todo[lane.next];
        const number = numberOf(cell, index);
        const needs = dependency(kind, number, cell.microBatch, last);
        if (needs !== null && !ends.has(needs)) break;
        const begin = Math.max(lane.free, needs === null ? 0 : ends.get(needs));
        const end = begin + mean[kind];
        if (begin > lane.free + 1e-9) {
          lane.cells.push({name: 'bubble', phase: phaseOf('bubble'), microBatch: -1, cell: -1, begin: lane.free, end: begin, bytes: 0, peer: ''});
        }
        lane.cells.push({...cell, begin, end});
        ends.set(`${kind}:${number}:${cell.microBatch}`, end);
        lane.free = end;
        lane.next += 1;
        moved = true;
      }
    });
  }
  const length = Math.max(0, ...lanes.map((lane) => lane.free));
  let busy = 0;
  for (const lane of lanes) {
    for (const cell of lane.cells) if (cell.phase.busy) busy += cell.end - cell.begin;
    if (lane.free < length - 1e-9) {
      lane.cells.push({name: 'bubble', phase: phaseOf('bubble'), microBatch: -1, cell: -1, begin: lane.free, end: length, bytes: 0, peer: ''});
    }
  }
  return {step: step.step, lanes, length, bubble: length > 0 ? 1 - busy / (length * lanes.length) : NaN};
}
