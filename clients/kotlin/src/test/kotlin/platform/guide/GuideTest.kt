package platform.guide

import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.DisplayName
import platform.client.ROOT
import platform.client.Server
import java.io.ByteArrayOutputStream
import java.io.File
import java.io.PrintStream
import kotlin.test.Test
import kotlin.test.assertEquals

/** Address that the page writes out. */
internal lateinit var URL: String

/** The guide's page. */
internal class GuideTest {
    private val page = File(ROOT, "docs/kotlin.md").readText()

    private fun block(head: String) = page.substringAfter("```$head\n").substringBefore("```")

    @Test
    @DisplayName("[KT22] the example of the guide's page compiles, and prints what it says")
    fun example() {
        val file = File(ROOT, "clients/kotlin/src/test/kotlin/platform/guide/Example.kt").readText()
        assertEquals(file.substringAfter("\n\n").replace("(URL)", "(\"http://127.0.0.1:8787\")"), block("kotlin run"))
        Server(block("ts platform.config.ts")).use { server ->
            URL = server.url
            val printed = ByteArrayOutputStream()
            val before = System.out
            System.setOut(PrintStream(printed, true))
            try {
                runBlocking { main() }
            } finally {
                System.setOut(before)
            }
            assertEquals(block("text answer"), printed.toString())
        }
    }
}
