// A job's records as columns of numbers for the curves, and as a list of events.
import {PADDING, isOfAClass, measureText, measureValue, num, stateName} from './format.js';

const MOST_POINTS = 40000;
const MOST_EVENTS = 500;
export const STEP_COLUMNS = ['loss', 'learning_rate', 'gradient_norm', 'step_seconds', 'tokens_per_second', 'bubble'];

/** The column of a measure beside the loss, as of accuracy. */
export const measureColumn = (name) => `measure ${name}`;

/**
 * Grows by add(). Steps repeated after a recovery replace the first try: they have the same numbers, and a
 * curve over steps must not run backwards. Beyond MOST_POINTS every other old point is dropped, so a long
 * job costs bounded memory.
 */
export class Series {
  constructor() {
    this.next = 0;
    this.version = 0;
    this.steps = [];
    this.evaluations = [];
    this.measures = [];          // names of what is measured beside the loss, as they came
    this.marks = [];
    this.events = [];
    this.lastCheckpoint = null;
    this.checkpointError = '';
    this.lastRecovery = null;
    this.placedAt = 0;           // when the job last began to run, or was told to recover
    this.beganAt = NaN;          // when it ran for the first time
    this.lastState = null;
  }

  add(records) {
    for (const record of records) {
      const number = num(record.number);
      if (number <= this.next) continue;
      this.next = number;
      this.addOne(record);
    }
    if (this.steps.length > MOST_POINTS) {
      const newest = this.steps.length - 1000;
      this.steps = this.steps.filter((point, index) => index >= newest || index % 2 === 0);
    }
    if (this.events.length > MOST_EVENTS) this.events.splice(0, this.events.length - MOST_EVENTS);
    if (records.length > 0) this.version += 1;
  }

  /** Those of texts (`written`) have nothing for a curve. */
  addOne(record) {
    const at = {time: num(record.unix_seconds), step: num(record.step)};
    if (record.step_done) {
      while (this.steps.length > 0 && this.steps[this.steps.length - 1].step >= at.step) this.steps.pop();
      const point = {...at, skipped: record.step_done.skipped === true};
      for (const column of STEP_COLUMNS) point[column] = num(record.step_done[column]);
      this.takeMeasures(record.step_done.measures, point);
      this.steps.push(point);
      if (point.skipped) this.event(at, 'skip', `step ${at.step} skipped: a number was not finite`);
    } else if (record.evaluation) {
      while (this.evaluations.length > 0 && this.evaluations[this.evaluations.length - 1].step >= at.step) {
        this.evaluations.pop();
      }
      const point = {...at, loss: num(record.evaluation.loss)};
      const measures = this.takeMeasures(record.evaluation.measures, point);
      this.evaluations.push(point);
      this.event(at, 'evaluation', `evaluation loss ${point.loss.toFixed(4)}${measures}`);
    } else if (record.checkpoint) {
      this.checkpointError = record.checkpoint.error || '';
      if (this.checkpointError === '') {
        this.lastCheckpoint = at;
        this.marks.push({...at, kind: 'checkpoint'});
        this.event(at, 'checkpoint', `checkpoint of step ${at.step} committed`);
      } else {
        this.event(at, 'problem', `checkpoint of step ${at.step} failed: ${this.checkpointError}`);
      }
    } else if (record.recovery) {
      this.lastRecovery = {...at, message: record.recovery.message || ''};
      this.placedAt = at.time;
      this.marks.push({...at, kind: 'recovery'});
      this.event(at, 'recovery', `recovery: ${this.lastRecovery.message}`);
    } else if (record.state) {
      this.lastState = at;
      if (record.state.detail === 'running') {
        this.placedAt = at.time;
        if (Number.isNaN(this.beganAt)) this.beganAt = at.time;
      }
      const why = record.state.message ? `: ${record.state.message}` : '';
      const detail = record.state.detail ? ` (${record.state.detail})` : '';
      this.event(at, 'state', `${stateName(record.state.state)}${detail}${why}`);
    } else if (record.finished) {
      const why = record.finished.message ? `: ${record.finished.message}` : '';
      const failed = stateName(record.finished.state) === 'FAILED';
      this.event(at, failed ? 'problem' : 'end', `ended ${stateName(record.finished.state)}${why}`);
    }
  }

  /** Into the point; as text for an event. */
  takeMeasures(measures, point) {
    let text = '';
    for (const {name, value} of measures || []) {
      if (isOfAClass(name) || name === PADDING) continue;
      point[measureColumn(name)] = num(value);
      if (!this.measures.includes(name)) this.measures.push(name);
      text += `, ${measureText(name)} ${measureValue(name, value)}`;
    }
    return text;
  }

  event(at, kind, text) {
    this.events.push({...at, kind, text});
  }

  /** Steps of the placement at hand; at most the last `window` and one more. */
  stepsOfPlacement(window = 50) {
    return this.steps.slice(-window - 1).filter((point) => point.time >= this.placedAt);
  }

  /** Seconds from one step to the next over the last steps, evaluations and checkpoints included. */
  secondsPerStep(window = 50) {
    const steps = this.stepsOfPlacement(window);
    const [first, last] = [steps[0], steps[steps.length - 1]];
    if (!last || last.step <= first.step) return NaN;
    return (last.time - first.time) / (last.step - first.step);
  }
}
