import { Code } from "@mantine/core";

/** A value as text of many lines. Long lines are broken. */
export const Json = ({ value }: { value: unknown }) => (
  <Code block className="wrapped">
    {JSON.stringify(value, null, 2)}
  </Code>
);
