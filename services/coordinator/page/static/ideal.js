// The schedule that ran, as it would run with equal stages and links that cost nothing.
import {phaseOf} from './phases.js';

const KINDS = ['forward', 'recompute', 'backward'];

function means(lanes) {
  const sums = {};
  for (const lane of lanes) {
    for (const cell of lane.cells) {
      if (!KINDS.includes(cell.name)) continue;
      const sum = sums[cell.name] || (sums[cell.name] = {total: 0, count: 0});
      sum.total += cell.end - cell.begin;
      sum.count += 1;
    }
  }
  return Object.fromEntries(Object.entries(sums).map(([name, sum]) => [name, sum.total / sum.count]));
}

/** What must have ended before this piece may begin: the same micro-batch's one on the neighbour. */
function dependency(cell, stage, stages) {
  if (cell.name === 'forward') return stage > 0 ? `forward:${stage - 1}:${cell.microBatch}` : null;
  if (cell.name === 'backward') return stage + 1 < stages ? `backward:${stage + 1}:${cell.microBatch}` : null;
  return null;
}

/**
 * A step like gantt_model's: each lane keeps the order that it ran in, every piece takes the mean time of its
 * kind over all stages, and starts as soon as the stage is free and its input is there. busy is the share of
 * all stages' time that works.
 */
export function idealStep(step) {
  const mean = means(step.lanes);
  const lanes = step.lanes.map((lane) => ({stage: lane.stage, name: lane.name, cells: [], sends: [], receives: [],
    todo: lane.cells.filter((cell) => KINDS.includes(cell.name)), next: 0, free: 0}));
  const ends = new Map();
  for (let moved = true; moved;) {
    moved = false;
    lanes.forEach((lane, index) => {
      while (lane.next < lane.todo.length) {
        const cell = lane.todo[lane.next];
        const needs = dependency(cell, index, lanes.length);
        if (needs !== null && !ends.has(needs)) break;
        const begin = Math.max(lane.free, needs === null ? 0 : ends.get(needs));
        const end = begin + mean[cell.name];
        if (begin > lane.free + 1e-9) {
          lane.cells.push({name: 'bubble', phase: phaseOf('bubble'), microBatch: -1, begin: lane.free, end: begin, bytes: 0, peer: ''});
        }
        lane.cells.push({...cell, begin, end});
        // Of a backward in two parts the first one sends the gradient.
        const key = `${cell.name}:${index}:${cell.microBatch}`;
        if (!ends.has(key)) ends.set(key, end);
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
      lane.cells.push({name: 'bubble', phase: phaseOf('bubble'), microBatch: -1, begin: lane.free, end: length, bytes: 0, peer: ''});
    }
  }
  return {step: step.step, lanes, length, bubble: length > 0 ? 1 - busy / (length * lanes.length) : NaN};
}
