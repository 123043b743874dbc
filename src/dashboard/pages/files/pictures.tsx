import { Checkbox, SimpleGrid, Stack, Text, useMatches } from "@mantine/core";
import { useResizeObserver } from "@mantine/hooks";
import { useRef, useState } from "react";
import { bytesText } from "../../parts/format.tsx";
import { IconFolder } from "../../parts/icons.tsx";
import { useVirtualRows } from "../../parts/list/virtual-rows.ts";
import { Name, PageLink, plainName } from "../../parts/name.tsx";
import { nameOf, useAddresses } from "./address.ts";
import { iconOf, kindOf } from "./kinds.ts";
import { type Entries, toggled } from "./list.tsx";
import { useBucket } from "./toolbar.tsx";

const PICTURE_SHOWN_MAX_BYTES = 4 * 1024 * 1024;
/** Width of a picture in the grid, in pixels. */
const PICTURE_WIDTH = 160;

const COLUMNS = { base: 2, xs: 3, md: 5, lg: 6, xl: 8 };
const GAP_PX = 12;
/** Height of a caption: a card has a picture of four by three, and two lines of its name. */
const CAPTION_PX = 54;

/** Returns the smallest declared size that fills a card; null: load the picture itself, unless it is large. */
function thumbOf(sizes: readonly string[]): string | null {
  const widths = sizes.map((size) => ({ size, width: Number(size.split("x")[0]) }));
  const large = widths.filter(({ width }) => width >= PICTURE_WIDTH).sort((a, b) => a.width - b.width);
  return large[0]?.size ?? widths.sort((a, b) => b.width - a.width)[0]?.size ?? null;
}

/** Content types for which the server makes thumbnails. */
const THUMBED = /^image\/(png|jpeg|gif|webp|bmp|avif|heic|tiff)/;

/** Virtualized grid of a folder's folders and files, with pictures. */
export function Pictures({ bucket, list, folders, files: all, chosen, onChoose }: Entries) {
  const thumb = thumbOf(useBucket(bucket).data?.thumbs ?? []);
  const place = useRef<HTMLDivElement>(null);
  const [box, { width }] = useResizeObserver<HTMLDivElement>();
  const columns = useMatches(COLUMNS, { getInitialValueInEffect: false });
  const cardPx = Math.max(0, (width - GAP_PX * (columns - 1)) / columns);
  const rowPx = Math.round((cardPx * 3) / 4) + CAPTION_PX + GAP_PX;
  const count = Math.ceil((folders.length + all.length) / columns);
  const { from, to, beforePx, afterPx } = useVirtualRows(place, { count, rowPx, list });
  const [first, end] = [from * columns, to * columns];
  const files = all.slice(Math.max(0, first - folders.length), Math.max(0, end - folders.length));
  const shown = files.filter(
    ({ contentType, size }) =>
      kindOf(contentType) === "picture" &&
      (size <= PICTURE_SHOWN_MAX_BYTES || (thumb !== null && THUMBED.test(contentType))),
  );
  const addresses = useAddresses(
    bucket,
    shown.map(({ key }) => key),
  );
  const addressOf = (key: string, contentType: string): string | undefined => {
    const address = addresses.data?.get(key);
    return address === undefined || thumb === null || !THUMBED.test(contentType)
      ? address
      : `${address}&thumb=${thumb}`;
  };
  return (
    <div ref={box}>
      <div ref={place} style={{ height: beforePx }} />
      <SimpleGrid
        cols={columns}
        spacing={GAP_PX}
        component="ul"
        className="file-grid"
        style={{ gridAutoRows: rowPx - GAP_PX }}
      >
        {folders.slice(first, end).map((folder) => (
          <li key={folder} className="file-card">
            <PageLink change={{ prefix: folder, q: undefined }} className="file-card-link">
              <span className="file-card-picture">
                <IconFolder
                  size={44}
                  stroke={1.2}
                  color="var(--mantine-color-yellow-7)"
                  fill="var(--mantine-color-yellow-4)"
                  aria-hidden
                />
              </span>
              <Caption name={nameOf(folder)} about="folder" />
            </PageLink>
          </li>
        ))}
        {files.map(({ key, contentType, size }) => (
          <li key={key} className="file-card" data-chosen={chosen.has(key) || undefined}>
            {onChoose === null ? null : (
              <Checkbox
                className="file-card-choose"
                size="md"
                aria-label={`Choose ${plainName(nameOf(key))}`}
                checked={chosen.has(key)}
                onChange={() => onChoose(toggled(chosen, key))}
              />
            )}
            <PageLink change={{ file: key }} className="file-card-link">
              <Miniature address={addressOf(key, contentType)} contentType={contentType} />
              <Caption name={nameOf(key)} about={bytesText(size)} />
            </PageLink>
          </li>
        ))}
      </SimpleGrid>
      <div style={{ height: afterPx }} />
    </div>
  );
}

function Miniature({ address, contentType }: { address: string | undefined; contentType: string }) {
  const [isBroken, setIsBroken] = useState(false);
  const Icon = iconOf(contentType);
  return (
    <span className="file-card-picture">
      {address === undefined || isBroken ? (
        <Icon size={44} stroke={1.2} aria-hidden />
      ) : (
        // The name stands beside it.
        <img src={address} alt="" loading="lazy" decoding="async" onError={() => setIsBroken(true)} />
      )}
    </span>
  );
}

const Caption = ({ name, about }: { name: string; about: string }) => (
  <Stack gap={0} p={6} miw={0}>
    <Text size="sm" truncate component="div">
      <Name>{name}</Name>
    </Text>
    <Text size="xs" c="dimmed">
      {about}
    </Text>
  </Stack>
);
