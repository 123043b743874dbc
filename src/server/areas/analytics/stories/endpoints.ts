import { badField } from "../../../../kernel/errors.ts";
import { parseSpan } from "../../../../kernel/time/iso-datetime.ts";
import { requireServiceKey } from "../../../access/service-key-right.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { STORY_PARAMETERS } from "../query-parameters.ts";
import { LIST_LIMIT_DEFAULT, REQUEST_ID_LENGTH_MAX } from "./limits.ts";
import { KeptRequests, KeptStory, SlowQueries } from "./model.ts";
import type { Stories } from "./stories.ts";

const tag = "Administration";
/** The right to the log: a story names tables, rules and records as the log does. */
const READ = ["system", "*", "*", "read"] as const;

/** Endpoints for the stories of requests, and for the statements that made them slow. [AN120]-[AN125] */
export function storyEndpoints(stories: Stories): readonly Endpoint[] {
  const list = endpoint(
    "GET /api/admin/requests",
    {
      tag,
      summary: "List requests whose stories are kept",
      description: "Of slow and failed requests, under `platform dev` of all: the 1,000 newest since the start.",
      caller: "serviceKey",
      place: "none",
      query: STORY_PARAMETERS,
      answers: { 200: KeptRequests },
      errors: [400],
    },
    ({ principal, query }) => {
      requireServiceKey(principal, READ);
      const { limit = LIST_LIMIT_DEFAULT, ...span } = query();
      const requests = stories.list({ ...parseSpan(span), limit });
      return { requests, keeps: stories.isAll ? ("all" as const) : ("slow and failed" as const) };
    },
  );
  const one = endpoint(
    "GET /api/admin/requests/:id",
    {
      tag,
      summary: "Get the story of a request",
      description:
        "What it has asked, read, changed and enqueued, in order, with plans and times. Without values: statements have no " +
        "parameters, records only their ids. Other requests have only the ids of their jobs.",
      caller: "serviceKey",
      place: "none",
      path: { id: "The id of the request, as in X-Request-Id" },
      answers: { 200: KeptStory },
      errors: [400],
    },
    ({ principal, query, params: { id } }) => {
      requireServiceKey(principal, READ);
      query();
      if (id.length > REQUEST_ID_LENGTH_MAX) {
        throw badField("id", "too_long", `id must have at most ${REQUEST_ID_LENGTH_MAX} characters, got ${id.length}`);
      }
      return { request: stories.story(id), jobs: [...stories.jobs(id)] };
    },
  );
  const slow = endpoint(
    "GET /api/admin/slow-queries",
    {
      tag,
      summary: "List slow queries, with the index that would help",
      description:
        "Statements of kept stories that took 10 ms or longer, since the start. `index` has been tried on an empty copy of " +
        "the schema: `POST /api/admin/config/edits` with `addIndex` adds it.",
      caller: "serviceKey",
      place: "none",
      answers: { 200: SlowQueries },
    },
    ({ principal, query }) => {
      requireServiceKey(principal, READ);
      query();
      return { queries: stories.slowQueries() };
    },
  );
  return [list, one, slow];
}
