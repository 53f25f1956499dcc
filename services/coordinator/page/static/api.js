// The coordinator's JSON (docs/http_api.md).

const DEADLINE_MS = 8000;

/** An error answer: code is the gRPC name, e.g. NOT_FOUND; UNAVAILABLE where no answer came. */
export class ApiError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

async function request(path, options = {}) {
  let reply;
  try {
    reply = await fetch(path, {cache: 'no-store', signal: AbortSignal.timeout(DEADLINE_MS), ...options});
  } catch (error) {
    throw new ApiError('UNAVAILABLE', 'the coordinator does not answer');
  }
  let body = null;
  try {
    body = await reply.json();
  } catch (error) {
    throw new ApiError('INTERNAL', `${path}: not JSON (HTTP ${reply.status})`);
  }
  if (!reply.ok) {
    const problem = body.error || {};
    throw new ApiError(problem.code || `HTTP ${reply.status}`, problem.message || `HTTP ${reply.status}`);
  }
  return body;
}

const jobPath = (id) => `/api/v1/jobs/${encodeURIComponent(id)}`;

const LIST_PAGE = 1000;

/** All jobs, newest first, page by page; those that are listed already, with the token of the page behind them, first. */
export async function listJobs(listed = [], token = '') {
  const jobs = [...listed];
  let after = token;
  do {
    const page = await request(`/api/v1/jobs?${new URLSearchParams({limit: LIST_PAGE, after})}`);
    jobs.push(...(page.jobs || []));
    after = page.next_page_token || '';
  } while (after);
  return jobs;
}
export const listStages = async () => (await request('/api/v1/stages')).stages || [];
export const getJob = (id) => request(jobPath(id));
export const getRecords = (id, after) => request(`${jobPath(id)}/records?after=${after}`);
export const getTrace = (id, steps) => request(`${jobPath(id)}/trace?steps=${steps}`);
/** files: also the pictures themselves. */
export const getShownPictures = (id, files) => request(`${jobPath(id)}/pictures?files=${files ? 1 : 0}`);
export const traceFile = (id, steps) => `${jobPath(id)}/trace?steps=${steps}&format=chrome`;

export function getLogs(id, stage, tail) {
  const query = new URLSearchParams({job: id, tail});
  if (stage !== '') query.set('stage', stage);
  return request(`/api/v1/logs?${query}`);
}

/** The header cannot be sent by another site's page, so no other site can cancel. */
export const cancelJob = (id) =>
  request(`${jobPath(id)}/cancel`, {method: 'POST', headers: {'X-Stagecoach-Request': 'cancel'}});

export function streamPath(id, after) {
  const query = new URLSearchParams();
  if (id) {
    query.set('job', id);
    query.set('after', after);
  }
  return `/api/v1/stream?${query}`;
}
