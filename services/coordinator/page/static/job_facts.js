// What a Job message says, with its zeros and gaps read right.
import {PADDING, compact, num, percent, stateName, zero} from './format.js';

const ENDED = ['JOB_STATE_SUCCEEDED', 'JOB_STATE_FAILED', 'JOB_STATE_CANCELLED'];

export function hasEnded(job) {
  return ENDED.includes(job?.state);
}

/** An unfinished job that goes on only when somebody resumes it. */
export function isHeld(job) {
  return job?.detail === 'held' && !hasEnded(job);
}

/** Why a drawing by stages has none. */
export function whyNoStages(job) {
  if (hasEnded(job)) return 'The job has ended: its stages work for others or are gone.';
  return isHeld(job) ? 'The job was interrupted: no stage works for it.' : 'No stage is placed yet.';
}

/** SUCCEEDED, ...; HELD for an interrupted one. */
export function stateOf(job) {
  return isHeld(job) ? 'HELD' : stateName(job?.state);
}

/** Stages K of the placement, or that the job waits for; NaN: as many as will be free. */
export function pipelineStages(job) {
  return num(job?.pipeline_stages) || (job?.stages || []).length || num(job?.spec?.pipeline?.stages) || NaN;
}

/** Steps in all; NaN or 0: the job counts in epochs and has not loaded its data. */
export function totalSteps(job) {
  return num(job?.total_steps) || num(job?.spec?.training?.steps);
}

/** A stage's place in the pipeline: while others are lost, not its place in the list. */
export function placeOf(stage, index) {
  return stage.stage === undefined ? index : num(stage.stage);
}

/** 'layers 4–7', or 'layers 0–1, 4–5' of two cells; empty before the job is partitioned. */
export function layersText(stage) {
  const cells = stage.cells || [{first: stage.first_layer, last: stage.last_layer}];
  const ranges = cells.filter((cell) => num(cell.last) > 0).map((cell) => `${zero(cell.first)}–${num(cell.last) - 1}`);
  return ranges.length > 0 ? `layers ${ranges.join(', ')}` : '';
}

/** A step was done: before that the zeros of step time, throughput and bubble are no measurements. */
export function hasMeasured(job) {
  return num(job?.step_seconds) > 0;
}

const ON_TOKENS = new Set(['text', 'parallel_text', 'json_lines', 'token_file']);

/** What a job works through: tokens of texts, and of all else pictures, however many targets each has. of(job or step): in a second. */
export function throughputOf(job) {
  const kind = job?.summary?.data || Object.keys(job?.spec?.data || {})[0] || 'text';
  if (ON_TOKENS.has(kind)) return {what: 'tokens', of: (step) => num(step.tokens_per_second)};
  const pictures = num(job?.summary?.batch_size) || num(job?.spec?.training?.batch_size);
  return {what: 'pictures', of: (step) => pictures / num(step.step_seconds)};
}

/** "457 pictures/s" of the last step. */
export function throughputText(job) {
  const {what, of} = throughputOf(job);
  return hasMeasured(job) ? `${compact(of(job))} ${what}/s` : '–';
}

/** "12 % padding" of the last step; empty where lengths are fixed. */
export function paddingText(job) {
  const padding = (job?.measures || []).find(({name}) => name === PADDING);
  return padding ? `${percent(padding.value)} padding` : '';
}

/** Where the planned time of a step comes from, to stand behind it. */
export function rateText(job) {
  switch (job.forecast_rate_source) {
    case 'RATE_SOURCE_ASSUMED': return ` at an assumed ${num(job.forecast_flops_per_second) / 1e9} GFLOP/s`;
    case 'RATE_SOURCE_GIVEN': return ` at ${num(job.forecast_flops_per_second) / 1e9} GFLOP/s`;
    case 'RATE_SOURCE_PROFILE': return ' from a profile';
    default: return '';
  }
}

/** It writes texts, and step_seconds are those of a command: a step is a mini-batch of lines and has many. */
export function isWriting(job) {
  return Boolean(job?.spec?.write);
}

/** One stage waits for no neighbour, whatever share of its time is not spent in layers. Of texts none is measured. */
export function hasBubble(job) {
  return pipelineStages(job) !== 1 && !isWriting(job);
}

/** Stages of the placement that are lost while the job recovers. */
export function lostStages(job) {
  const stages = job?.stages || [];
  if (hasEnded(job) || job?.detail !== 'recovering') return 0;
  return Math.max(0, pipelineStages(job) - stages.length) || 0;
}
