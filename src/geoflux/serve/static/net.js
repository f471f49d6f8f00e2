// Talking to the server: JSON, and streams of events that come back after a dropped connection.

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

let onUnknown = () => {};

// Called when the server does not know who is asking.
export function whenUnknown(action) {
  onUnknown = action;
}

export async function ask(path, options = {}) {
  const given = { credentials: "same-origin", ...options };
  if (given.json !== undefined) {
    given.method ??= "POST";
    given.body = JSON.stringify(given.json);
    given.headers = { "content-type": "application/json", ...given.headers };
    delete given.json;
  }
  const answer = await fetch(path, given);
  const text = await answer.text();
  const body = text && answer.headers.get("content-type")?.includes("json") ? JSON.parse(text) : text;
  if (!answer.ok) {
    if (answer.status === 401 && path !== "/v1/session") onUnknown();
    throw new Refused(answer.status, told(body) || `${answer.status} ${answer.statusText}`);
  }
  return body;
}

export function view(name, parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null);
  const query = new URLSearchParams(given);
  return ask(`/v1/view/${name}${given.length ? `?${query}` : ""}`);
}

// The browser connects again by itself; `state` hears whether there is a connection.
export function listen(path, handlers, state = () => {}) {
  const source = new EventSource(path);
  source.onopen = () => state("open");
  source.onerror = () => state(source.readyState === EventSource.CLOSED ? "closed" : "lost");
  for (const [name, handler] of Object.entries(handlers)) {
    source.addEventListener(name, (event) => handler(JSON.parse(event.data), event.lastEventId));
  }
  return source;
}

function told(body) {
  if (typeof body === "string") return body.slice(0, 300);
  const detail = body?.detail ?? body?.error ?? body?.message;
  if (typeof detail === "string") return detail;
  return detail === undefined ? "" : JSON.stringify(detail).slice(0, 300);
}
