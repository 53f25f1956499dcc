// Rates from totals: stages tell totals since their start, the page remembers the last minute of them.
import {zero} from './format.js';

const KEEP_SECONDS = 62;

/** One stage's recent totals; forgotten when its process starts anew. */
class History {
  constructor() {
    this.samples = [];
    this.incarnation = '';
  }

  add(info) {
    const telemetry = info.telemetry;
    if (!telemetry) return;
    const uptime = zero(telemetry.uptime_seconds);
    const incarnation = info.stage?.incarnation || '';
    const last = this.samples[this.samples.length - 1];
    if (incarnation !== this.incarnation || (last && uptime < last.uptime)) this.samples = [];
    if (this.samples.length > 0 && this.samples[this.samples.length - 1].uptime === uptime) return;
    this.incarnation = incarnation;
    this.samples.push({uptime, phases: telemetry.phases?.seconds || {}, links: telemetry.links || []});
    while (this.samples[0].uptime < uptime - KEEP_SECONDS) this.samples.shift();
  }

  /** The oldest sample within the window, and the newest; null where there are not two. */
  ends(seconds) {
    const newest = this.samples[this.samples.length - 1];
    if (!newest) return null;
    const oldest = this.samples.find((sample) => sample.uptime >= newest.uptime - seconds - 1);
    return oldest && newest.uptime > oldest.uptime ? {oldest, newest, seconds: newest.uptime - oldest.uptime} : null;
  }
}

export class Telemetry {
  constructor() {
    this.histories = new Map();
  }

  add(stages) {
    for (const info of stages) {
      const name = info.stage?.name || '';
      if (!this.histories.has(name)) this.histories.set(name, new History());
      this.histories.get(name).add(info);
    }
  }

  /** {seconds, phases: {name: seconds}} over at most the last minute; null where nothing is known yet. */
  phases(name, window = 60) {
    const ends = this.histories.get(name)?.ends(window);
    if (!ends) return null;
    const phases = {};
    for (const [phase, seconds] of Object.entries(ends.newest.phases)) {
      phases[phase] = Math.max(0, zero(seconds) - zero(ends.oldest.phases[phase]));
    }
    return {seconds: ends.seconds, phases};
  }

  /** {sent, received} in bytes per second towards `peer`; null where nothing is known yet. */
  rates(name, peer, window = 10) {
    const ends = this.histories.get(name)?.ends(window);
    if (!ends) return null;
    const of = (sample) => sample.links.find((link) => link.peer === peer);
    const [old, now] = [of(ends.oldest), of(ends.newest)];
    if (!old || !now) return null;
    const rate = (field) => Math.max(0, zero(now[field]) - zero(old[field])) / ends.seconds;
    return {sent: rate('sent_bytes'), received: rate('received_bytes')};
  }
}
