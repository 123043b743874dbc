import { notFound } from "../../../kernel/errors.ts";
import { throwProblems } from "../../../kernel/fields.ts";
import { jsonCopy } from "../../../kernel/json/copy.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { authoredParser } from "../../../kernel/schema/authored-parser.ts";
import type { AppAccess, JobsAccessor } from "../../config/app/index.ts";
import type { JobsConfig } from "../../config/types.ts";
import { JOB_CONCURRENCY_DEFAULT, JOB_RETRIES_DEFAULT, JOB_TIMEOUT_DEFAULT_SECONDS } from "../limits.ts";
import type { Queue } from "../types.ts";
import { chosenOptions } from "./entry.ts";

/** Defines the jobs of the config in the queue. */
export function defineJobs(queue: Queue, jobs: JobsConfig, app: () => AppAccess): void {
  for (const [name, job] of Object.entries(jobs)) {
    queue.define(name, {
      retries: job.retries ?? JOB_RETRIES_DEFAULT,
      timeout: job.timeout ?? JOB_TIMEOUT_DEFAULT_SECONDS,
      concurrency: job.concurrency ?? JOB_CONCURRENCY_DEFAULT,
      run: ({ id, data, attempt, signal, log }) => job.run({ id, data, app: app(), attempt, signal, log }),
    });
  }
}

/** Checks the data of a job. Errors: 404 for a name that is not declared, 400 for data that its schema refuses. */
export type JobForm = (name: string, data: unknown) => JsonValue;

export function createJobForm(jobs: JobsConfig): JobForm {
  const member = "a field of this job's data";
  const parsers = new Map(
    Object.entries(jobs).map(([name, { data }]) => [
      name,
      data === undefined ? null : authoredParser(data, { name: "data", member }),
    ]),
  );
  return (name, data) => {
    const parser = parsers.get(name);
    if (parser === undefined) throw notFound(`There is no job "${name}"`);
    const given = jsonCopy({ data: (data as JsonValue | undefined) ?? null })["data"] ?? null;
    const problems = parser?.problemsOf(given, "data") ?? null;
    if (problems !== null) throwProblems(problems);
    return given;
  };
}

/** Creates `app.jobs`. [JB20] [JB21] */
export const createJobsAccessor = (queue: Queue, form: JobForm): JobsAccessor => ({
  enqueue: async (name, data, options) => queue.enqueue(name, form(name, data), chosenOptions(options)),
});
