import {
  ActionIcon,
  AppShell,
  Burger,
  Button,
  Group,
  Menu,
  NavLink,
  Text,
  Tooltip,
  UnstyledButton,
  useMantineColorScheme,
} from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Link, Outlet, useLocation } from "@tanstack/react-router";
import { Activity } from "react";
import { useHeld } from "../api/held.ts";
import { signOut, useRights, useSession } from "../api/session.tsx";
import { IconLogout, IconMoon, IconSearch, IconSun, IconUserCircle } from "../parts/icons.tsx";
import { useLoadingAhead } from "./loading-ahead.ts";
import { openSearch, Search } from "./search.tsx";
import { useSections } from "./sections.ts";
import { ServerNotes } from "./server-notes.tsx";
import { Shortcuts } from "./shortcuts.tsx";
import { SignInPage } from "./sign-in.tsx";
import { ViewAs } from "./view-as.tsx";

const HEADER_PX = 52;
const NAVBAR_PX = 208;

/** The pages, or the sign-in in front of them when the session has ended: they keep what was typed, and are at rest. */
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

/** What every page has: the navigation, the search, whose view it is, and the way out. */
function Shell() {
  const [isOpen, { toggle, close }] = useDisclosure(false);
  useLoadingAhead();
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
            <SearchButton />
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
      <Search />
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
        // What a page was filtered by belongs to that page; whose view it is goes along.
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

function SearchButton() {
  return (
    <>
      <UnstyledButton
        onClick={openSearch}
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
      <ActionIcon variant="default" size="lg" onClick={openSearch} hiddenFrom="sm" aria-label="Search">
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
