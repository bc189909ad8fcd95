"""Names of the documentation site break where a reader expects it, and what is copied stays the same."""

import re

from tools.documentation.long_names import broken

CODE = '<p><code class="docutils literal"><span class="pre">{}</span></code></p>'


def test_a_long_name_breaks_behind_points_and_before_capitals_and_a_short_one_nowhere() -> None:
    assert "group.<wbr>initial.<wbr>rebalance.<wbr>delay.<wbr>ms" in broken(
        CODE.format("group.initial.rebalance.delay.ms")
    )
    assert "Default<wbr>Kafka<wbr>Principal<wbr>Builder" in broken(CODE.format("DefaultKafkaPrincipalBuilder"))
    assert broken(CODE.format("--set")) == CODE.format("--set")


def test_only_cells_have_long_words_of_texts_broken() -> None:
    words = "see org.apache.kafka.Long &lt;b&gt; and http://localhost:8081/subjects"
    assert broken(f"<p>{words}</p>") == f"<p>{words}</p>"
    cell = broken(f'<td class="a.long.class.of.a.cell"><p>{words}</p></td>')
    assert "org.<wbr>apache.<wbr>kafka.<wbr>Long" in cell and "a.long.class.of.a.cell" in cell
    assert re.sub("<wbr>", "", cell) == f'<td class="a.long.class.of.a.cell"><p>{words}</p></td>'
