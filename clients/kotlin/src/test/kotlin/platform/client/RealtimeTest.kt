package platform.client

import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.async
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.joinAll
import kotlinx.coroutines.launch
import kotlinx.serialization.json.JsonObject
import org.junit.jupiter.api.DisplayName
import platform.client.realtime.Change
import platform.client.realtime.RealtimeStatus
import platform.client.realtime.RoomStatus
import java.util.UUID
import java.util.concurrent.ConcurrentHashMap
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertTrue

/** Live queries, changes, presence and broadcasts. */
internal class RealtimeTest : ServerTest() {
    private fun JsonObject.id() = text("id")!!

    @Test
    @DisplayName("[KT16] a live query shows what its list shows: sorted, limited, filled up again")
    fun live() = tested {
        server.user().use { client ->
            val genre = UUID.randomUUID().toString()
            val films = client.db("shared").table("films", Film.serializer())
            val query = films.where("title", "==", genre).sort("year", Direction.DESC).limit(3)
            val shown = Channel<List<Int?>>(Channel.UNLIMITED)
            val following = launch { query.live().collect { list -> shown.send(list.map { it.year }) } }
            suspend fun shows(vararg years: Int) {
                while (shown.receive() != years.toList()) Unit
                assertEquals(years.toList(), query.list().items.map { it.year })
            }
            shows()
            val ids = (1..12).associateWith { films.insert(mapOf("title" to genre, "year" to it)).id }
            shows(12, 11, 10)
            films.update(ids.getValue(3), mapOf("year" to 20))
            shows(20, 12, 11)
            for (year in 5..12) films.delete(ids.getValue(year))
            shows(20, 4, 2)
            films.update(ids.getValue(3), mapOf("title" to "another"))
            shows(4, 2, 1)
            following.cancel()
            until { client.realtimeStatus.value == RealtimeStatus.IDLE }
            for (other in listOf(query.fields("title"), query.expand("directorId"), query.near("place", 1.0, 1.0))) {
                failing(400) { other.live().first() }
            }
        }
    }

    @Test
    @DisplayName("[KT17] changes from the beginning on, as seen through the conditions")
    fun changes() = tested {
        server.user().use { client ->
            val title = UUID.randomUUID().toString()
            val films = client.db("shared").table("films")
            val seen = Channel<Change<JsonObject>>(Channel.UNLIMITED)
            val isReady = CompletableDeferred<Unit>()
            val following = launch { films.where("title", "==", title).where("year", ">", 0).changes { isReady.complete(Unit) }.collect(seen::send) }
            isReady.await()
            val id = films.insert(mapOf("title" to title, "year" to 1)).id()
            films.update(id, mapOf("year" to 2))
            films.update(id, mapOf("year" to 0))
            assertEquals(1L, (seen.receive() as Change.Added).record.long("year"))
            assertEquals(2L, (seen.receive() as Change.Modified).record.long("year"))
            assertEquals<Any>(Change.Removed(id), seen.receive())
            films.batch(inserts = List(12) { mapOf("title" to title, "year" to it + 1) })
            assertEquals((1L..12).toList(), List(12) { (seen.receive() as Change.Added).record.long("year") })
            following.cancel()
        }
    }

    @Test
    @DisplayName("[KT18] nothing is missing after a kill of the server: records came, changed and went, and presence is shown again")
    fun restart() = tested {
        Server(CONFIG).use { own ->
            own.root().use { root ->
                own.user().use { client ->
                    val films = root.db("shared").table("films")
                    films.batch(inserts = listOf("stays", "changes", "goes").map { mapOf("id" to it, "title" to "A") })
                    val seen = Channel<Change<JsonObject>>(Channel.UNLIMITED)
                    val isReady = CompletableDeferred<Unit>()
                    val work = mutableListOf(launch { films.changes { isReady.complete(Unit) }.collect(seen::send) })
                    var titles = emptyList<String>()
                    work += launch { client.db("shared").table("films").live().collect { list -> titles = list.map { it.id() }.sorted() } }
                    var present = 0
                    work += launch { root.presence("lobby").entries.collect { present = it.size } }
                    isReady.await()
                    client.presence("lobby").track(mapOf("mood" to "fine"))
                    until { present == 1 && titles.size == 3 }
                    own.kill()
                    until { client.realtimeStatus.value == RealtimeStatus.OFFLINE }
                    own.start()
                    films.insert(mapOf("id" to "comes", "title" to "A"))
                    films.update("changes", mapOf("year" to 2))
                    films.delete("goes")
                    val found = List(3) { seen.receive() }.map { change ->
                        when (change) {
                            is Change.Added -> "added ${change.record.id()}"
                            is Change.Modified -> "modified ${change.record.id()}"
                            is Change.Removed -> "removed ${change.id}"
                            Change.Resync -> "resync"
                        }
                    }
                    assertEquals(setOf("added comes", "modified changes", "removed goes"), found.toSet())
                    until { titles == listOf("changes", "comes", "stays") && present == 1 }
                    work.forEach { it.cancel() }
                    work.joinAll()
                }
            }
        }
    }

    @Test
    @DisplayName("[KT19] rights decide, and go on with fresh tokens: 401 for nobody and ended sessions, 403 where they end")
    fun rights() = tested {
        val root = server.root()
        PlatformClient(server.url).use { nobody -> failing(401) { nobody.db("shared").table("notes").live().first() } }
        val client = server.user()
        val id = client.auth.user!!.id
        val secrets = client.db("shared").table("secrets")
        failing(403) { secrets.live().first() }
        root.db("shared").table("members").insert(mapOf("id" to id, "userId" to id))
        val seen = ConcurrentHashMap.newKeySet<String>()
        val denied = async { failing(403) { secrets.live().collect { list -> seen += list.map { it.id() } } } }
        val notes = client.db("shared").table("notes").live()
        val ended = async { failing(401) { notes.collect { } } }
        // Longer than an access token lives.
        delay(3_000)
        val secret = root.db("shared").table("secrets").insert(mapOf("text" to "A")).id()
        until { secret in seen }
        root.db("shared").table("members").delete(id)
        denied.await()
        root.request("POST", "/api/auth/admin/users/$id/revoke")
        ended.await()
        client.close()
        root.close()
    }

    @Test
    @DisplayName("[KT19] what one user follows ends when another one signs in, and what nobody began goes on")
    fun anotherUser() = tested {
        PlatformClient(server.url).use { client ->
            val films = client.db("shared").table("films")
            val title = UUID.randomUUID().toString()
            var shown = -1
            val following = launch { films.where("title", "==", title).live().collect { shown = it.size } }
            until { shown == 0 }
            client.auth.signUp("${UUID.randomUUID()}@example.com", PASSWORD)
            val isReady = CompletableDeferred<Unit>()
            val own = async { failing(401) { client.db("shared").table("notes").changes { isReady.complete(Unit) }.collect { } } }
            isReady.await()
            films.insert(mapOf("title" to title))
            until { shown == 1 }
            assertTrue(following.isActive)
            following.cancel()
            client.auth.signUp("${UUID.randomUUID()}@example.com", PASSWORD)
            own.await()
        }
    }

    @Test
    @DisplayName("[KT20] presence: who is there, with what state, until they leave; nobody is 401")
    fun presence() = tested {
        val ann = server.user()
        val bob = server.user()
        val name = UUID.randomUUID().toString()
        val seen = Channel<List<String>>(Channel.UNLIMITED)
        val following = launch { bob.presence(name).entries.collect { list -> seen.send(list.map { it.state.text("mood").orEmpty() }) } }
        assertEquals(emptyList(), seen.receive())
        ann.presence(name).track(mapOf("mood" to "fine"))
        assertEquals(listOf("fine"), seen.receive())
        ann.presence(name).track(mapOf("mood" to "better"))
        assertEquals(listOf("better"), seen.receive())
        // A second collector, and one that begins later, see the same.
        assertEquals(1, bob.presence(name).entries.first { it.isNotEmpty() }.size)
        failing(413) { ann.presence(name).track(mapOf("mood" to "x".repeat(2_000))) }
        ann.presence(name).untrack()
        assertEquals(emptyList(), seen.receive())
        until { ann.realtimeStatus.value == RealtimeStatus.IDLE }
        PlatformClient(server.url).use { nobody -> failing(401) { nobody.presence(name).entries.first() } }
        following.cancel()
        ann.close()
        bob.close()
    }

    @Test
    @DisplayName("[KT21] a broadcast reaches those who listen, each of several collectors")
    fun broadcast() = tested {
        val ann = server.user()
        val bob = server.user()
        val name = UUID.randomUUID().toString()
        val heard = Channel<String>(Channel.UNLIMITED)
        val work = List(2) {
            val listening = CompletableDeferred<Unit>()
            launch { bob.broadcast(name).events { listening.complete(Unit) }.collect { heard.send("${it.event} ${it.data}") } }.also { listening.await() }
        }
        ann.broadcast(name).send("said", mapOf("text" to "hi"))
        assertEquals(List(2) { "said {\"text\":\"hi\"}" }, List(2) { heard.receive() })
        work.forEach { it.cancel() }
        until { bob.realtimeStatus.value == RealtimeStatus.IDLE && ann.realtimeStatus.value == RealtimeStatus.IDLE }
        ann.close()
        bob.close()
    }

    @Test
    @DisplayName("[KT23] states follow, actions answer, refusals say why, and a removed player is 403")
    fun room() = tested {
        val ann = server.user()
        val bob = server.user()
        val id = UUID.randomUUID().toString()
        val mine = ann.joinRoom("board", id)
        val theirs = bob.joinRoom("board", id)
        val said = async { theirs.messages.first() }
        val before = theirs.states.value.shared
        assertEquals("3", mine.act("write", mapOf("line" to "one")).toString())
        theirs.states.first { it.shared["lines"]?.toString() == "[\"one\"]" }
        mine.states.first { it.mine.long("count") == 1L }
        assertEquals(0, before.size + theirs.states.value.mine.size)
        mine.act("clear")
        theirs.states.first { "last" !in it.shared }
        assertEquals("A line has a text", failing(400) { mine.act("write", mapOf("line" to "")) }.message)
        failing(404) { mine.act("dance") }
        until {
            mine.act("say", mapOf("text" to "hi"))
            delay(100)
            said.isCompleted
        }
        assertEquals("said {\"text\":\"hi\"}", said.await().let { "${it.type} ${it.data}" })
        theirs.act("kick", mapOf("userId" to ann.auth.user!!.id))
        mine.status.first { it == RoomStatus.LEFT }
        assertEquals(403, mine.problem?.status)
        failing(403) { mine.act("clear") }
        failing(403) { bob.joinRoom("board", "closed-1") }
        PlatformClient(server.url).use { nobody -> failing(401) { nobody.joinRoom("board", id) } }
        theirs.close()
        failing(0) { theirs.act("clear") }
        ann.close()
        bob.close()
    }

    @Test
    @DisplayName("[KT23] a room is joined again after a kill of the server, with its state; it ends with the session")
    fun roomAgain() = tested {
        Server(CONFIG).use { own ->
            own.user().use { client ->
                val room = client.joinRoom("board", "a")
                room.act("write", mapOf("line" to "one"))
                room.states.first { "lines" in it.shared }
                own.kill()
                room.status.first { it == RoomStatus.OFFLINE }
                own.start()
                room.status.first { it == RoomStatus.JOINED }
                assertEquals("3", room.act("write", mapOf("line" to "two")).toString())
                room.states.first { it.shared["lines"]?.toString() == "[\"one\",\"two\"]" }
                own.root().use { it.request("POST", "/api/auth/admin/users/${client.auth.user!!.id}/revoke") }
                room.status.first { it == RoomStatus.LEFT }
                assertEquals(401, room.problem?.status)
            }
        }
    }

    @Test
    @DisplayName("[KT15] flows end with their client")
    fun closed() = tested {
        val client = server.user()
        val isReady = CompletableDeferred<Unit>()
        val following = async { failing(0) { client.db("shared").table("films").changes { isReady.complete(Unit) }.collect { } } }
        isReady.await()
        client.close()
        following.await()
    }
}
