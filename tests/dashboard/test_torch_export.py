"""The upload says what this site takes."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from apps.catalog.models import Network


def test_torch_export_is_neither_offered_nor_taken_by_default(ada: Client) -> None:
    assert ".pt2" not in ada.get("/networks/").content.decode()
    file = SimpleUploadedFile("a.pt2", b"x")
    answer = ada.post("/networks/", {"file": file}, headers={"X-Requested-With": "XMLHttpRequest"})
    assert answer.status_code == 400
    assert "ALLOW_TORCH_EXPORT=1" in answer.json()["error"]
    assert "run code" in answer.json()["error"]


@pytest.mark.usefixtures("site")
def test_where_it_is_turned_on_the_page_says_so_and_waits_for_the_conversion(ada: Client, settings: Any) -> None:
    settings.ALLOW_TORCH_EXPORT = True
    assert 'accept=".onnx,.pt2"' in ada.get("/networks/").content.decode()
    assert ada.post("/networks/", {"file": SimpleUploadedFile("res&net.pt2", b"x")}).status_code == 302
    network = Network.objects.get(file_name="res&net.pt2")
    assert "Converting res&amp;net.pt2 to ONNX" in ada.get(f"/networks/{network.pk}/").content.decode()
