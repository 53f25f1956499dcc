// Keeps the store current: one stream of server-sent events, polling while there is none.
import {ApiError, getJob, getRecords, listJobs, listStages, streamPath} from './api.js';

const POLL_MS = 2000;
const FIRST_RETRY_MS = 1000;
const LAST_RETRY_MS = 15000;
const SILENCE_MS = 6000;  // stages come every second: a longer silence is a dead connection

export class Live {
  constructor(store) {
    this.store = store;
    this.source = null;
    this.retryMs = FIRST_RETRY_MS;
    this.timers = {};
    this.turn = 0;  // rises with every change of job, so that late answers are known as such
    this.asked = 0;  // lists of jobs, in the order of their asking
    this.shown = 0;  // the newest of these that the store has
  }

  /** Begins anew for a job, or for the lists only (null). */
  start(jobId) {
    this.stop();
    this.turn += 1;
    this.jobId = jobId;
    this.retryMs = FIRST_RETRY_MS;
    this.begin(this.turn);
  }

  stop() {
    this.closeStream();
    for (const timer of Object.values(this.timers)) clearTimeout(timer);
    this.timers = {};
  }

  // History first by pages, then the stream from its end: a stream would send it all in one event. The lists come
  // with the stream.
  async begin(turn) {
    await this.poll(turn, false);
    if (turn === this.turn) this.openStream();
  }

  openStream() {
    this.closeStream();
    const turn = this.turn;
    const source = new EventSource(streamPath(this.jobId, this.store.series.next));
    this.source = source;
    const on = (name, take) => source.addEventListener(name, (event) => {
      if (turn !== this.turn || source !== this.source) return;
      this.heard();
      take(JSON.parse(event.data));
    });
    on('jobs', (data) => this.takeJobs(turn, data));
    on('job', (data) => this.store.setJob(data));
    on('records', (data) => this.store.addRecords(this.jobId, data.records || []));
    on('unreadable', (data) => this.store.setUnreadable(this.jobId, data.error.message));
    on('stages', (data) => this.store.setStages(data.stages || []));
    on('end', () => this.streamFailed());
    source.onopen = () => this.heard();
    // The browser's own retry would ask for records from an old number on; ours knows better.
    source.onerror = () => {
      if (source === this.source) this.streamFailed();
    };
    this.watchSilence();
  }

  // The event has the newest page; those behind it are asked for.
  async takeJobs(turn, data) {
    const list = ++this.asked;
    const newest = data.jobs || [];
    if (!data.next_page_token) {
      this.showJobs(turn, list, newest);
      return;
    }
    try {
      this.showJobs(turn, list, await listJobs(newest, data.next_page_token));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (this.store.jobs === null) this.showJobs(turn, list, newest);
    }
  }

  // A list of many pages takes longer than the next event: the older one must not replace the newer.
  showJobs(turn, list, jobs) {
    if (turn !== this.turn || list < this.shown) return;
    this.shown = list;
    this.store.setJobs(jobs);
  }

  heard() {
    this.retryMs = FIRST_RETRY_MS;
    this.store.setConnection('live');
    clearTimeout(this.timers.poll);
    this.watchSilence();
  }

  watchSilence() {
    clearTimeout(this.timers.silence);
    this.timers.silence = setTimeout(() => this.streamFailed(), SILENCE_MS);
  }

  closeStream() {
    clearTimeout(this.timers.silence);
    if (this.source) this.source.close();
    this.source = null;
  }

  streamFailed() {
    this.closeStream();
    const turn = this.turn;
    if (this.store.connection === 'live') this.store.setConnection('polling');
    clearTimeout(this.timers.retry);
    this.timers.retry = setTimeout(() => {
      if (turn === this.turn) this.openStream();
    }, this.retryMs);
    this.retryMs = Math.min(LAST_RETRY_MS, this.retryMs * 2);
    this.poll(turn, true);
  }

  async poll(turn, again) {
    clearTimeout(this.timers.poll);
    const list = ++this.asked;
    const lists = again || !this.jobId;
    try {
      await Promise.all([
        lists && listJobs().then((jobs) => this.showJobs(turn, list, jobs)),
        lists && listStages().then((stages) => turn === this.turn && this.store.setStages(stages)),
        this.jobId ? this.pollJob(turn) : null,
      ]);
      if (turn === this.turn && again && this.store.connection !== 'live') this.store.setConnection('polling');
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (turn === this.turn && error.code === 'UNAVAILABLE') this.store.setConnection('lost');
    }
    if (again && turn === this.turn && this.store.connection !== 'live') {
      clearTimeout(this.timers.poll);
      this.timers.poll = setTimeout(() => this.poll(turn, true), POLL_MS);
    }
  }

  async pollJob(turn) {
    try {
      const job = await getJob(this.jobId);
      if (turn !== this.turn) return;
      this.store.setJob(job);
      for (let complete = false; !complete;) {
        const page = await getRecords(this.jobId, this.store.series.next);
        if (turn !== this.turn) return;
        this.store.addRecords(this.jobId, page.records || []);
        complete = page.complete !== false || (page.records || []).length === 0;
      }
    } catch (error) {
      if (turn !== this.turn || !(error instanceof ApiError)) throw error;
      if (error.code === 'FAILED_PRECONDITION') this.store.setUnreadable(this.jobId, error.message);
      else if (error.code !== 'UNAVAILABLE') this.store.setProblem(error);
      throw error;
    }
  }
}
