import {
  ActionIcon,
  AppShell,
  Burger,
  Button,
  Group,
  Kbd,
  Menu,
  Modal,
  NavLink,
  Table,
  Text,
  Tooltip,
  UnstyledButton,
  useMantineColorScheme,
} from "@mantine/core";
import { useDisclosure, useHotkeys } from "@mantine/hooks";
import { notifications } from "@mantine/notifications";
import { QueryObserver } from "@tanstack/react-query";
import { Link, Outlet, useLocation } from "@tanstack/react-router";
import { Activity, type ComponentType, useEffect, useLayoutEffect, useRef, useState } from "react";
import { queries } from "../api/server.ts";
import { signOut, useRights, useSession } from "../api/session.tsx";
import { loadersBelow } from "../pages.ts";
import { IconLogout, IconMoon, IconSearch, IconSun, IconUserCircle } from "../parts/icons.tsx";
import { useSections } from "./sections.ts";
import { ServerNotes } from "./server-notes.tsx";
import { SignInPage } from "./sign-in.tsx";
import { ViewAs } from "./view-as.tsx";

/** Keeps the queries of hidden pages alive. Hidden pages have no observers, and without their data forms would start over. */
function useHeld(isHeld: boolean): void {
  const releases = useRef<readonly (() => void)[]>([]);
  // Starts before the pages drop their observers, and, below, ends after they have restored them.
  useLayoutEffect(() => {
    if (!isHeld) return;
    const shown = queries.getQueryCache().findAll({ type: "active" });
    releases.current = shown.map(({ options, queryKey }) =>
      new QueryObserver(queries, { ...options, queryKey, enabled: false }).subscribe(() => {}),
    );
  }, [isHeld]);
  useEffect(() => {
    if (!isHeld) return;
    return () => {
      for (const release of releases.current) release();
    };
  }, [isHeld]);
}

const KEYS: readonly (readonly [string, string])[] = [
  ["/", "Search tables, users, files and pages"],
  ["?", "Show these keys"],
  ["↑ ↓ ← →", "Move in a grid"],
  ["Enter", "Edit a cell, save it"],
  ["Alt Enter", "Open what a cell refers to"],
  ["Escape", "Cancel, close"],
];

/** List of the keyboard shortcuts, opened by `?`. */
function Shortcuts() {
  const [isOpen, setIsOpen] = useState(false);
  useHotkeys([
    ["shift+?", () => setIsOpen(true)],
    ["?", () => setIsOpen(true)],
  ]);
  return (
    <Modal opened={isOpen} onClose={() => setIsOpen(false)} title="Keys">
      <Table>
        <Table.Tbody>
          {KEYS.map(([key, what]) => (
            <Table.Tr key={key}>
              <Table.Td w={120}>
                <Kbd>{key}</Kbd>
              </Table.Td>
              <Table.Td>{what}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Modal>
  );
}

/** Longest wait for an idle browser before the next page's code is loaded. */
const AHEAD_IDLE_MAX_MS = 200;

/** Returns whether the browser is asked to save data; some do not report it. */
const isSavingData = (): boolean =>
  "connection" in navigator && (navigator.connection as { saveData?: boolean } | undefined)?.saveData === true;

/** Resolves when the browser is idle, and the data of the page are loaded. */
async function whenIdle(signal: AbortSignal): Promise<void> {
  do {
    await new Promise<void>((resolve) => {
      // Safari lacks this function.
      if ("requestIdleCallback" in window) requestIdleCallback(() => resolve(), { timeout: AHEAD_IDLE_MAX_MS });
      else setTimeout(resolve, AHEAD_IDLE_MAX_MS);
    });
  } while (!signal.aborted && queries.isFetching() > 0);
}

/** Preloads the code of the other pages in sequence once the first one is shown, so that a click shows data at once. */
function useLoadingAhead(): void {
  const sections = useSections()
    .map(({ path }) => path)
    .join(" ");
  useEffect(() => {
    if (isSavingData()) return;
    const ended = new AbortController();
    void (async () => {
      for (const load of [loadSearch, ...sections.split(" ").flatMap(loadersBelow)]) {
        await whenIdle(ended.signal);
        if (ended.signal.aborted) return;
        // A failed preload is repeated by the click.
        await load().catch(() => {});
      }
    })();
    return () => ended.abort();
  }, [sections]);
}

const loadSearch = () => import("./search.tsx");

/** Returns the search, which is loaded when it is first opened, by `/` or a button; and a function that opens it. */
function useSearchBox() {
  const [Box, setBox] = useState<ComponentType | null>(null);
  const open = async (): Promise<void> => {
    try {
      const { Search, openSearch } = await loadSearch();
      setBox(() => Search);
      openSearch();
    } catch {
      // Chromium remembers a module that it could not load until the page is loaded again.
      const message = "Load the page again once the server answers.";
      notifications.show({ color: "red", title: "The search could not be loaded", message });
    }
  };
  useHotkeys([
    ["/", () => void open()],
    ["mod+K", () => void open()],
  ]);
  return { box: Box === null ? null : <Box />, open };
}

const HEADER_PX = 52;
const NAVBAR_PX = 208;

/** Pages, or the sign-in in front of them when the session has ended: they keep their input while hidden. */
export function Layout() {
  const hasEnded = useSession().data?.hasEnded === true;
  useHeld(hasEnded);
  return (
    <>
      <Activity mode={hasEnded ? "hidden" : "visible"}>
        <Shell />
      </Activity>
      {hasEnded ? <SignInPage /> : null}
    </>
  );
}

/** Frame of every page: navigation, search, View as and sign-out. */
function Shell() {
  const [isOpen, { toggle, close }] = useDisclosure(false);
  useLoadingAhead();
  const search = useSearchBox();
  return (
    <AppShell
      header={{ height: HEADER_PX }}
      navbar={{ width: NAVBAR_PX, breakpoint: "sm", collapsed: { mobile: !isOpen } }}
      padding="md"
    >
      <a href="#content" className="skip">
        Skip to the content
      </a>
      <AppShell.Header>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap" gap="xs">
          <Group gap="xs" wrap="nowrap">
            <Burger opened={isOpen} onClick={toggle} hiddenFrom="sm" size="sm" aria-label="Navigation" />
            <Text fw={700} component={Link} to="/" c="inherit" td="none">
              Platform
            </Text>
          </Group>
          <Group gap="xs" wrap="nowrap">
            <SearchButton onOpen={() => void search.open()} />
            <ViewAs />
            <ThemeButton />
            <Account />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" component="nav" aria-label="Pages">
        <Navigation onNavigate={close} />
      </AppShell.Navbar>
      <AppShell.Main id="content">
        <ServerNotes />
        <Outlet />
      </AppShell.Main>
      {search.box}
      <Shortcuts />
    </AppShell>
  );
}

const keepView = ({ as }: { as?: string }) => (as === undefined ? {} : { as });

function Navigation({ onNavigate }: { onNavigate: () => void }) {
  const { pathname } = useLocation();
  return useSections().map(({ name, path, icon: Icon }) => {
    const isHere = path === "/" ? pathname === "/" : pathname.startsWith(path);
    return (
      <NavLink
        key={path}
        component={Link}
        to={path}
        // Filters belong to one page; View as carries over.
        search={keepView as never}
        label={name}
        leftSection={<Icon size={18} stroke={1.6} aria-hidden />}
        active={isHere}
        aria-current={isHere ? "page" : undefined}
        onClick={onNavigate}
      />
    );
  });
}

function SearchButton({ onOpen }: { onOpen(): void }) {
  return (
    <>
      <UnstyledButton
        onClick={onOpen}
        visibleFrom="sm"
        px="sm"
        py={5}
        bd="1px solid var(--mantine-color-default-border)"
        bdrs="sm"
        aria-label="Search"
      >
        <Group gap="xs" w={200}>
          <IconSearch size={16} aria-hidden />
          <Text size="sm" c="dimmed" flex={1}>
            Search
          </Text>
          <Text size="xs" c="dimmed" ff="monospace">
            /
          </Text>
        </Group>
      </UnstyledButton>
      <ActionIcon variant="default" size="lg" onClick={onOpen} hiddenFrom="sm" aria-label="Search">
        <IconSearch size={18} />
      </ActionIcon>
    </>
  );
}

function ThemeButton() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const isDark =
    colorScheme === "dark" || (colorScheme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  const label = isDark ? "Light colours" : "Dark colours";
  return (
    <Tooltip label={label}>
      <ActionIcon
        variant="default"
        size="lg"
        aria-label={label}
        onClick={() => setColorScheme(isDark ? "light" : "dark")}
      >
        {isDark ? <IconSun size={18} /> : <IconMoon size={18} />}
      </ActionIcon>
    </Tooltip>
  );
}

function Account() {
  const { name } = useRights();
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="default" px={8} aria-label={`Signed in with the key ${name}`}>
          <IconUserCircle size={18} aria-hidden />
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>Key {name}</Menu.Label>
        <Menu.Item leftSection={<IconLogout size={16} aria-hidden />} onClick={() => void signOut()}>
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
