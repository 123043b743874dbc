/** An answer with a status other than 200, or with headers. */
export class Reply {
  readonly status: number;
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string>> | undefined;

  constructor(status: number, body: unknown, headers?: Readonly<Record<string, string>>) {
    this.status = status;
    this.body = body;
    this.headers = headers;
  }
}

/** An answer that says nothing of what is stored: see `silently`. */
export class SilentReply extends Reply {}

export const created = (body: unknown): Reply => new Reply(201, body);

/** JSON text that is already serialised. */
export class JsonText {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

export const OK = { ok: true } as const;
