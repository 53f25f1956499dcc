"""The model of a card: its counts against closed formulas, and what must hold of its predictions."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tools"))
sys.dont_write_bytecode = True
from gpu_report import arithmetic, card_model, jobs, speed  # noqa: E402

CARD = card_model.CARDS["h100"]
SHAPE = {"layers": 3, "width": 256, "heads": 4, "context": 128, "vocabulary": 1000}


class CardModelTest(unittest.TestCase):
    def test_flops_are_the_model_flops_and_one_product_of_attention_computed_again(self):
        flops = sum(o.flops * o.times for o in card_model.operations(SHAPE, 2, 5))
        tokens = 2 * 5 * SHAPE["context"]
        again = 0.5 * 2 * 2 * (SHAPE["context"] + 1) / 2 * SHAPE["width"] * SHAPE["layers"]
        self.assertAlmostEqual(flops / (tokens * (arithmetic.flops_per_token(SHAPE) + again)), 1, places=12)

    def test_launches_and_bytes_of_a_block(self):
        found = card_model.block(SHAPE, 256, 1)
        self.assertEqual(sum(o.launches * o.times for o in found), 7 + 22)
        backward = next(o for o in found if o.name == "attention, backward")
        self.assertEqual(backward.bytes, 8 * 2 * 256 * 256 + 2 * 2 * (2 * 4 * 128 * 128))

    def test_the_head_goes_by_chunks_that_each_add_to_the_gradient_of_its_weight(self):
        self.assertEqual(card_model.chunks_of_head(32 * 1024, 50257), 8)  # of 4096 rows, as network/passes/head_chunks_test.cc
        self.assertEqual(card_model.chunks_of_head(32 * 1024, 400000), 32)  # of 1024 rows at least
        self.assertEqual(card_model.chunks_of_head(100, 50257), 1)
        wide = {**SHAPE, "context": 1024, "vocabulary": 50257}
        head = [o for o in card_model.operations(wide, 32, 3) if o.name == "head, backward"]
        self.assertEqual([o.times for o in head], [24, 24])
        self.assertEqual(head[1].bytes, 2 * 4096 * (256 + 50257) + 8 * 256 * 50257)

    def test_the_update_moves_38_bytes_a_parameter(self):
        update = card_model.operations(SHAPE, 1, 1)[-1]
        self.assertEqual(update.bytes, 38 * arithmetic.parameters(SHAPE))

    def test_shares_of_every_row(self):
        for card in card_model.CARDS.values():
            for name, context in jobs.SPEED_ROWS:
                found = card_model.predict(*card_model.published(card, name, context), card)
                self.assertTrue(0 < found["mfu"] < 1, (card.name, name, context))
                self.assertAlmostEqual(sum(found["parts"].values()), 1)
                self.assertTrue(all(part >= 0 for part in found["parts"].values()))

    def test_wider_takes_longer_and_uses_the_card_better(self):
        found = [card_model.predict({**SHAPE, "width": width, "heads": width // 64}, 8, 4, CARD)
                 for width in (256, 512, 1024, 2048)]
        self.assertEqual(found, sorted(found, key=lambda each: each["step_seconds"]))
        self.assertEqual(found, sorted(found, key=lambda each: each["mfu"]))

    def test_every_assumption_goes_the_right_way(self):
        costs = {"gap", "launch", "step"}
        for name, low, high in card_model.sensitivity(card_model.published(CARD, "1.5B", 1024), CARD):
            self.assertTrue(low >= high if name in costs else low <= high, name)

    def test_only_cards_that_are_modelled_have_a_value(self):
        work = (SHAPE, 2, 5)
        self.assertIsNone(card_model.model_mfu(None, "bfloat16", *work), "the CPU")
        for name in ("NVIDIA H100 PCIe", "NVIDIA H200 NVL", "NVIDIA GH200 480GB", "NVIDIA A100-SXM4-80GB"):
            self.assertIsNone(card_model.model_mfu(name, "bfloat16", *work), name)
        self.assertIsNone(card_model.model_mfu("NVIDIA H200", "float32", *work))
        self.assertGreater(card_model.model_mfu("NVIDIA H100 80GB HBM3", "bfloat16", *work), 0)
        self.assertIn(("model", "model", "%"), speed.COLUMNS)


if __name__ == "__main__":
    unittest.main(verbosity=1)
