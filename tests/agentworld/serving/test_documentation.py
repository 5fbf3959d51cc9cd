import pytest
from fastapi.testclient import TestClient

import make.service


def client(folder) -> TestClient:
    return TestClient(make.service.service(folder).app)


@pytest.mark.compute
def test_the_root_of_a_service_links_to_docs_openapi_and_health(tmp_path):
    service = client(tmp_path)
    links = service.get("/").json()
    assert [service.get(links[name]).status_code for name in ("docs", "openapi", "health")] == [
        200,
        200,
        200,
    ]
    page = service.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert "<td>POST</td><td><code>/runs</code></td>" in page.text
    assert "<script" not in page.text


def test_the_error_for_a_wrong_content_type_names_application_json(tmp_path):
    answer = client(tmp_path).post("/runs", content="{}", headers={"content-type": "text/plain"})
    assert answer.status_code == 422
    message = answer.json()["error"]["message"]
    assert "'text/plain'" in message
    assert "content-type: application/json" in message
