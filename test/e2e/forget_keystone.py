# Opens transactions in a process of the API's image and with its configuration, and forgets them: this release hands out
# a query that runs after its session was given back, and nobody ends what it begins. Something is forgotten every second,
# whenever expand comes. The lock tells the test that it is so.
import collections, time

from keystone.common import provider_api, sql
from keystone.server.wsgi import initialize_public_application

initialize_public_application()
forgotten = collections.deque(maxlen=20)
while True:
    query = provider_api.ProviderAPIs.federation_api.driver.get_enabled_service_providers()
    list(query)
    forgotten.append(query)
    if len(forgotten) == 1:
        with sql.session_for_write() as session:
            session.execute(sql.sql.text("SELECT GET_LOCK('forgotten', 0)"))
    time.sleep(1)
