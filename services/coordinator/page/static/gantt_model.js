// From traces of stages to lanes on one clock, step by step.
import {zero} from './format.js';
import {phaseOf} from './phases.js';

const TRACKS = {TRACE_TRACK_COMPUTE: 'cells', TRACE_TRACK_SEND: 'sends', TRACE_TRACK_RECEIVE: 'receives'};

function nanos(value) {
  return BigInt(value || 0);
}

/**
 * Newest attempt of every step of a stage, by time since attempts count anew after a recovery: a step tried again
 * is drawn as it went in the end, and an evaluation or a checkpoint on the way to a step is not part of it.
 */
function lastAttempts(spans) {
  const newest = new Map();
  for (const span of spans) {
    const end = nanos(span.end_unix_nanos);
    const known = newest.get(span.step);
    if (!known || end >= known.end) newest.set(span.step, {end, attempt: zero(span.attempt)});
  }
  return new Map([...newest].map(([step, {attempt}]) => [step, attempt]));
}

function addSpan(lane, span, base, offset) {
  const begin = Number(nanos(span.begin_unix_nanos) - offset - base) / 1e6;
  const end = Number(nanos(span.end_unix_nanos) - offset - base) / 1e6;
  const track = TRACKS[span.track];
  if (track) {
    lane[track].push({name: span.name, phase: phaseOf(span.name), microBatch: zero(span.micro_batch),
                      cell: span.cell === undefined ? -1 : span.cell, begin,
                      end: Math.max(begin, end), bytes: zero(span.bytes), peer: span.peer || ''});
  }
}

/**
 * {steps: [{step, begin, end, lanes}], errors}: complete steps in ascending order, times in milliseconds by the
 * coordinator's clock from the first span on, endUnixSeconds by it too. A lane is {stage, name, cells, sends, receives, clockError}.
 * Its `cells` are pieces of time; the `cell` of one is that of the network, -1 where the stage has no other. A message's is the
 * one above its edge.
 * Complete is a step in which every stage has run every backward: the one at hand is left out. A first stage that
 * trains nothing runs none in any step; of it every forward is asked.
 */
export function stepsOf(trace, microBatches) {
  const stages = (trace.stages || []).filter((stage) => !stage.error && (stage.spans || []).length > 0);
  const errors = (trace.stages || []).filter((stage) => stage.error)
                                     .map((stage) => `Stage ${stage.stage}: ${stage.error}`);
  let base = null;
  for (const stage of stages) {
    for (const span of stage.spans) {
      const begin = nanos(span.begin_unix_nanos) - nanos(stage.clock_offset_nanos);
      if (base === null || begin < base) base = begin;
    }
  }
  const steps = new Map();
  stages.forEach((stage) => {
    const attempts = lastAttempts(stage.spans);
    for (const span of stage.spans) {
      if (zero(span.attempt) !== attempts.get(span.step)) continue;
      if (!steps.has(span.step)) steps.set(span.step, new Map());
      const lanes = steps.get(span.step);
      if (!lanes.has(stage.stage)) {
        lanes.set(stage.stage, {stage: stage.stage, name: stage.name, cells: [], sends: [], receives: [],
                                clockError: zero(stage.clock_error_nanos) / 1e6});
      }
      addSpan(lanes.get(stage.stage), span, base, nanos(stage.clock_offset_nanos));
    }
  });
  const training = new Set(stages.flatMap((stage) => stage.spans.filter((span) => span.name === 'backward')
    .map((span) => cellKey(stage.stage, span.cell))));
  const complete = [];
  for (const [step, byStage] of steps) {
    const lanes = [...byStage.values()].sort((a, b) => a.stage - b.stage);
    if (lanes.length === stages.length && isComplete(lanes, training, microBatches)) {
      // Spans count steps from 0; everything that people read counts steps done.
      complete.push(finish(Number(step) + 1, lanes, Number(base) / 1e9));
    }
  }
  return {steps: complete.sort((a, b) => a.step - b.step), errors};
}

/** `training`: keys of the cells that run a backward in any step. Without any, no step is complete. */
function isComplete(lanes, training, microBatches) {
  return training.size > 0 && lanes.every((lane) => {
    const done = new Map();
    for (const span of lane.cells) {
      const key = cellKey(lane.stage, span.cell);
      if (span.name !== (training.has(key) ? 'backward' : 'forward')) continue;
      if (!done.has(key)) done.set(key, new Set());
      done.get(key).add(span.microBatch);
    }
    const cells = new Set(lane.cells.filter((span) => span.name === 'forward').map((span) => cellKey(lane.stage, span.cell)));
    return done.size > 0 && [...cells].every((key) => done.get(key)?.size >= microBatches);
  });
}

/** Spans of a stage with one cell name none. */
function cellKey(stage, cell) {
  return `${stage}:${cell ?? -1}`;
}

function finish(step, lanes, baseUnixSeconds) {
  let [begin, end] = [Infinity, -Infinity];
  for (const lane of lanes) {
    lane.cells.sort((a, b) => a.begin - b.begin);
    for (const cell of lane.cells) {
      if (cell.name === 'idle') continue;
      begin = Math.min(begin, cell.begin);
      end = Math.max(end, cell.end);
    }
  }
  for (const lane of lanes) {
    for (const cell of [...lane.cells, ...lane.sends, ...lane.receives]) {
      cell.begin -= begin;
      cell.end -= begin;
    }
    // A stage that has done its part waits for the others: bubble, though no span of its own tells.
    const last = lane.cells[lane.cells.length - 1];
    if (last && last.end < end - begin - 1e-3) {
      lane.cells.push({name: 'bubble', phase: phaseOf('bubble'), microBatch: -1, cell: -1, begin: last.end, end: end - begin, bytes: 0, peer: ''});
    }
  }
  return {step, lanes, length: end - begin, endUnixSeconds: baseUnixSeconds + end / 1e3};
}
