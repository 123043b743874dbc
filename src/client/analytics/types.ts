export type EventProperties = { readonly [name: string]: string | number | boolean };

/** Events of the app. */
export interface Analytics {
  /**
   * Records an event, of the signed-in user if there is one. Events are sent together, some seconds later and as the page goes; an
   * event that the server refuses is a warning on the console.
   */
  track(name: string, properties?: EventProperties): void;
  /** Resolves when all events have been sent. Errors: `PlatformError`; the events wait for the next try. */
  flush(): Promise<void>;
}
