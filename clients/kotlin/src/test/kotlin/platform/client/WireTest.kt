package platform.client

import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import org.junit.jupiter.api.DisplayName
import platform.client.realtime.Change
import platform.client.realtime.Mirror
import platform.client.realtime.Window
import platform.client.realtime.changedBy
import platform.client.realtime.orderOf
import java.util.Date
import java.util.UUID
import kotlin.random.Random
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertNotNull
import kotlin.test.assertNull
import kotlin.test.assertTrue

/** The pure parts: addresses, JSON, retries, and what follows a list. */
internal class WireTest {
    @Test
    @DisplayName("[KT1] a url without http or https is refused")
    fun urls() {
        for (url in listOf("localhost:8787", "ftp://example.com", "", "http://", "http://a?b")) {
            assertFailsWith<IllegalArgumentException>(url) { PlatformClient(url) }
        }
        assertEquals("https://example.com/backend", baseOf("https://example.com/backend/"))
    }

    @Test
    @DisplayName("[KT3] dates, UUIDs and enums are sent as they mean, and what JSON does not have is 400")
    fun values() {
        val id = UUID.randomUUID()
        val sent = jsonOf(mapOf("at" to Date(0), "id" to id, "when" to Direction.ASC, "list" to listOf(1, null, 2.5, true)))
        val expected = """{"at":"1970-01-01T00:00:00.000Z","id":"$id","when":"ASC","list":[1,null,2.5,true]}"""
        assertEquals(expected, sent.toString())
        assertEquals("\"2026-01-02\"", jsonOf(java.time.LocalDate.of(2026, 1, 2)).toString())
        for (value in listOf(Double.NaN, Float.POSITIVE_INFINITY, JsonPrimitive(Double.NaN), Any())) {
            assertEquals(400, assertFailsWith<PlatformException> { jsonOf(listOf(value)) }.status)
        }
    }

    @Test
    @DisplayName("[KT10] ids are encoded, and those that lead elsewhere are refused before anything is sent")
    fun paths() {
        assertEquals("/a%20b%3Fc%25d%26e%3D%C3%BC/%2e", pathOf("a b?c%d&e=ü") + "/%2e")
        for (id in listOf("", ".", "..")) assertEquals(404, assertFailsWith<PlatformException> { pathOf("x", id) }.status)
        assertEquals("/a/b%20c.txt", keyPathOf("a/b c.txt"))
        for (key in listOf("a//b", "../a", "a/", "/a")) assertFailsWith<PlatformException>(key) { keyPathOf(key) }
        assertEquals("?q=a%20%2B%20b&n=1", queryOf(mapOf("q" to "a + b", "none" to null, "n" to 1)))
    }

    @Test
    @DisplayName("[KT4] three more tries, never before Retry-After, and none after a timeout or twenty seconds")
    fun waits() {
        val lost = PlatformException(0, "lost")
        for ((attempt, wait) in listOf(300L, 600L, 1200L).withIndex()) {
            val found = assertNotNull(waitBefore(attempt, lost))
            assertTrue(found in (wait * 7 / 10)..(wait * 13 / 10 + 1), "$found")
        }
        assertNull(waitBefore(3, lost))
        assertTrue(assertNotNull(waitBefore(0, PlatformException(429, "", retryAfterSeconds = 2.0))) >= 2_000)
        assertNull(waitBefore(0, PlatformException(503, "", retryAfterSeconds = 21.0)))
        assertNull(waitBefore(0, PlatformException(0, "", code = "timeout")))
        assertNull(waitBefore(0, PlatformException(500, "")))
        val busy = mapOf("key" to FieldProblem("idempotency_in_progress", ""))
        assertNotNull(waitBefore(0, PlatformException(409, "", fields = busy)))
    }

    @Test
    @DisplayName("[KT8] filters are conditions and groups")
    fun filters() {
        val filter = condition("a", "==", 1) and anyOf(condition("b", ">", 2), noneOf(condition("c", "in", listOf("x"))))
        val related = some("reviews", condition("filmId", "==", field("id")))
        val expected = """[["a","==",1],{"or":[[["b",">",2]],[{"not":[["c","in",["x"]]]}]]}]"""
        assertEquals(expected, filter.toString())
        assertEquals("""[{"some":{"table":"reviews","where":[["filmId","==",{"field":"id"}]]}}]""", related.toString())
    }

    @Test
    @DisplayName("[KT23] a delta makes another state, and leaves the one before as it is")
    fun deltas() {
        val state = json.parseToJsonElement("""{"a":{"b":1,"c":2},"d":[1]}""") as JsonObject
        val delta = json.parseToJsonElement("""{"a.b":null,"e.f.g":3,"d":[2]}""") as JsonObject
        assertEquals("""{"a":{"c":2},"d":[2],"e":{"f":{"g":3}}}""", changedBy(state, delta).toString())
        assertEquals("""{"a":{"b":1,"c":2},"d":[1]}""", state.toString())
    }

    private fun record(id: String, n: Int) = JsonObject(mapOf("id" to JsonPrimitive(id), "n" to JsonPrimitive(n)))

    @Test
    @DisplayName("[KT18] a list that is compared again shows what has changed; too long a list is one resync")
    fun mirror() {
        val mirror = Mirror(knownMax = 3)
        assertEquals(emptyList(), mirror.load(listOf(record("a", 1), record("b", 1))))
        assertEquals(listOf(Change.Modified(record("a", 2))), mirror.take("modified", "a", record("a", 2)))
        assertEquals(
            listOf(Change.Removed("b"), Change.Added(record("c", 1))),
            mirror.load(listOf(record("a", 2), record("c", 1))),
        )
        // The change that the list has shown already comes as well.
        assertEquals(emptyList(), mirror.take("added", "c", record("c", 1)))
        assertEquals(emptyList(), mirror.take("removed", "b", null))
        assertEquals(listOf<Change<JsonObject>>(Change.Removed("c")), mirror.take("removed", "c", null))
        assertEquals(listOf<Change<JsonObject>>(Change.Resync), mirror.load(null))
        assertEquals(listOf(Change.Added(record("d", 1))), mirror.take("added", "d", record("d", 1)))
        assertEquals(listOf<Change<JsonObject>>(Change.Resync), mirror.load(listOf(record("d", 1))))
    }

    @Test
    @DisplayName("[KT16] records are ordered as the server orders them: null, numbers, texts by code point, the id last")
    fun order() {
        val values = listOf("null", "0", "0.5", "true", "7", "\"A\"", "\"a\"", "\"\uFF5E\"", "\"\uD83D\uDE00\"")
        val records = values.mapIndexed { index, value ->
            JsonObject(mapOf("id" to JsonPrimitive("$index"), "v" to JsonObject(mapOf("w" to json.parseToJsonElement(value)))))
        }
        assertEquals(records, records.shuffled(Random(1)).sortedWith(orderOf(listOf("v.w" to Direction.ASC))))
        assertEquals(records.reversed(), records.shuffled(Random(2)).sortedWith(orderOf(listOf("v.w" to Direction.DESC))))
        val twins = listOf(record("b", 1), record("a", 1))
        assertEquals(twins, twins.reversed().sortedWith(orderOf(listOf("n" to Direction.DESC))))
    }

    @Test
    @DisplayName("[KT16] a window shows the first records whatever comes, changes and goes, in 300 random worlds")
    fun window() {
        for (seed in 1..300) {
            val random = Random(seed)
            val order = orderOf(listOf("n" to if (seed % 2 == 0) Direction.ASC else Direction.DESC))
            val server = HashMap<String, JsonObject>()
            val limit = random.nextInt(1, 8)
            val window = Window(order, limit, 3)
            val list = { server.values.sortedWith(order) }
            repeat(200) {
                val id = "r${random.nextInt(25)}"
                if (random.nextInt(3) == 0) {
                    server.remove(id)
                    window.remove(id)
                } else {
                    val next = record(id, random.nextInt(10))
                    server[id] = next
                    window.put(next)
                }
                if (window.isShort) window.replace(list().take(limit + 3), list().size > limit + 3)
                assertEquals(JsonArray(list().take(limit)), JsonArray(window.shown), "seed $seed")
            }
        }
    }
}
