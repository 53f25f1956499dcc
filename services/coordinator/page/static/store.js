// What the page knows. Parts of the page read it; live.js and the parts' own polls write it.
import {num} from './format.js';
import {hasEnded} from './job_facts.js';
import {Series} from './series.js';
import {Telemetry} from './telemetry.js';

const SKEW_SECONDS = 5;

export class Store {
  constructor() {
    this.jobs = null;            // null: not heard yet
    this.stages = null;
    this.jobId = null;           // the job looked at
    this.job = null;
    this.series = new Series();
    this.telemetry = new Telemetry();
    this.connection = 'connecting';  // connecting, live, polling, lost
    this.problem = null;         // ApiError about the job looked at
    this.unreadable = '';        // why its history ends before its newest record
    this.incarnations = new Map();  // stage server -> its process, as it was told last
    this.replaced = new Map();      // stage server -> when a new process took its place, while this page was open
    this.skew = Infinity;        // this clock minus the coordinator's, at least
    this.listeners = new Set();
    this.scheduled = false;
  }

  /** Calls listener soon after each change, at most once a frame. */
  subscribe(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  changed() {
    if (this.scheduled) return;
    this.scheduled = true;
    // A timer, not an animation frame: the title of a hidden tab should stay right too.
    setTimeout(() => {
      this.scheduled = false;
      for (const listener of this.listeners) listener(this);
    }, 16);
  }

  look(jobId) {
    this.jobId = jobId;
    this.job = null;
    this.problem = null;
    this.unreadable = '';
    this.series = new Series();
    this.changed();
  }

  setJobs(jobs) {
    this.jobs = jobs;
    this.changed();
  }

  setJob(job) {
    if (job.id !== this.jobId) return;
    this.job = job;
    this.problem = null;
    this.changed();
  }

  setStages(stages) {
    this.stages = stages;
    this.telemetry.add(stages);
    for (const info of stages) this.noteProcess(info.stage?.name, info.stage?.incarnation);
    const newest = Math.max(0, ...stages.map((info) => num(info.last_heartbeat_unix_seconds) || 0));
    if (newest > 0) this.skew = Math.min(this.skew, Date.now() / 1000 - newest);
    this.changed();
  }

  // A supervisor can have a killed server running again before anybody sees it as lost.
  noteProcess(name, incarnation) {
    const known = this.incarnations.get(name);
    if (known !== undefined && known !== incarnation) this.replaced.set(name, Date.now() / 1000);
    this.incarnations.set(name, incarnation);
  }

  addRecords(jobId, records) {
    if (jobId !== this.jobId) return;
    this.series.add(records);
    if (records.length > 0) this.unreadable = '';
    this.changed();
  }

  setUnreadable(jobId, why) {
    if (jobId !== this.jobId) return;
    this.unreadable = why;
    this.changed();
  }

  setConnection(state) {
    if (this.connection === state) return;
    this.connection = state;
    this.changed();
  }

  setProblem(problem) {
    this.problem = problem;
    this.changed();
  }

  /** Unix seconds by the coordinator's clock, as well as heartbeats tell it. */
  now() {
    const correction = Number.isFinite(this.skew) && Math.abs(this.skew) > SKEW_SECONDS ? this.skew : 0;
    return Date.now() / 1000 - correction;
  }

  /** The StageInfo of a registered name. */
  stageInfo(name) {
    return (this.stages || []).find((info) => info.stage?.name === name);
  }

  /** Likewise while it works for the job looked at: after that it may serve another one. */
  stageAtWork(name) {
    return this.ended ? undefined : this.stageInfo(name);
  }

  /** The job looked at is over. */
  get ended() {
    return hasEnded(this.job);
  }
}
