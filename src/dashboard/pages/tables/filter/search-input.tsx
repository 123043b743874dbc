import { TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { IconSearch } from "../../../parts/icons.tsx";
import { SEARCH_DELAY_MS } from "../limits.ts";

/** Words to search for, which are searched for when the typing pauses. */
export function SearchInput({
  placeholder = "Search",
  text,
  onChange,
}: {
  placeholder?: string;
  /** At first. */
  text: string;
  onChange(text: string): void;
}) {
  const later = useDebouncedCallback(onChange, SEARCH_DELAY_MS);
  return (
    <TextInput
      aria-label="Search"
      placeholder={placeholder}
      leftSection={<IconSearch size={16} aria-hidden />}
      defaultValue={text}
      onChange={(event) => later(event.currentTarget.value)}
      w={{ base: "100%", xs: 240 }}
    />
  );
}
