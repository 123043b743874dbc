import { Code, Stack, Text } from "@mantine/core";
import { useResources } from "../../api/resources.ts";
import { Section } from "../../parts/section.tsx";
import { Loadable } from "../../parts/states.tsx";

/** What `platform check` warns of in the config that runs. */
export function Warnings() {
  const resources = useResources();
  return (
    <Section title="Warnings of the config">
      <Loadable query={resources} rows={2}>
        {({ warnings }) =>
          warnings.length === 0 ? (
            <Text size="sm" c="dimmed">
              None.
            </Text>
          ) : (
            <Stack gap={6} component="ul" className="plain-list">
              {warnings.map(({ path, message }) => (
                <Text key={`${path} ${message}`} size="sm" component="li">
                  <Code>{path}</Code> {message}
                </Text>
              ))}
            </Stack>
          )
        }
      </Loadable>
    </Section>
  );
}
